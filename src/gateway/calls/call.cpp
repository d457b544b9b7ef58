#include "gateway/calls/call.h"

namespace hive::calls {

std::string_view to_string(Surface surface) {
  switch (surface) {
    case Surface::rest:
      return "rest";
    case Surface::mcp_stdio:
      return "mcp-stdio";
    case Surface::mcp_http:
      return "mcp-http";
    case Surface::mcp_sse:
      return "mcp-sse";
    case Surface::portal:
      return "portal";
    case Surface::assistant:
      return "assistant";
    case Surface::schedule:
      return "schedule";
    case Surface::approval:
      return "approval";
    case Surface::peer:
      return "peer";
  }
  return "unknown";
}

ToolAddress split_tool_name(std::string_view name) {
  size_t separator = name.find("__");
  if (separator == std::string_view::npos) return {{}, name};
  return {name.substr(0, separator), name.substr(separator + 2)};
}

}  // namespace hive::calls
