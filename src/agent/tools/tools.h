#pragma once

#include "agent/tool.h"

/// The built-in tools of an agent, one file each. What they take and return is in protocol/tools.cpp.
namespace hive::agent {

CancelHook get_metrics(ToolServices& services, ToolCall call);
CancelHook run_command(ToolServices& services, ToolCall call);
CancelHook read_logs(ToolServices& services, ToolCall call);
CancelHook get_system_info(ToolServices& services, ToolCall call);
CancelHook service_control(ToolServices& services, ToolCall call);
CancelHook container_ps(ToolServices& services, ToolCall call);
CancelHook k8s_get(ToolServices& services, ToolCall call);
CancelHook package_query(ToolServices& services, ToolCall call);
CancelHook file_read(ToolServices& services, ToolCall call);

/// Replies with the error and leaves the tool; for tools that check their arguments with Results.
#define HIVE_TRY_ARGUMENT(call, ...)                                        \
  __extension__({                                                           \
    auto&& try_result = (__VA_ARGS__);                                      \
    if (!try_result.has_value()) [[unlikely]] {                             \
      call.reply(invalid_arguments(std::move(try_result).error().message)); \
      return {};                                                            \
    }                                                                       \
    ::hive::detail::unwrap(std::move(try_result));                          \
  })

}  // namespace hive::agent
