#include <array>
#include <utility>

#include "agent/tool.h"
#include "agent/tools/tools.h"

namespace hive::agent {

namespace {

// tool_table_test holds this against the table of descriptions in protocol/tools.h, in both directions.
constexpr std::array<std::pair<std::string_view, ToolHandler>, 9> handlers = {{
    {"get_metrics", get_metrics},
    {"run_command", run_command},
    {"read_logs", read_logs},
    {"get_system_info", get_system_info},
    {"service_control", service_control},
    {"container_ps", container_ps},
    {"k8s_get", k8s_get},
    {"package_query", package_query},
    {"file_read", file_read},
}};

}  // namespace

ToolHandler find_tool_handler(std::string_view name) {
  for (const auto& [tool, handler] : handlers) {
    if (tool == name) return handler;
  }
  return nullptr;
}

}  // namespace hive::agent
