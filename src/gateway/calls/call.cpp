#include "gateway/calls/call.h"

#include <algorithm>
#include <array>

namespace hive::calls {

std::span<const Surface> all_surfaces() {
  static constexpr std::array surfaces = {Surface::rest,     Surface::mcp_stdio, Surface::mcp_http,
                                          Surface::mcp_sse,  Surface::portal,    Surface::assistant,
                                          Surface::schedule, Surface::approval,  Surface::peer};
  static_assert(surfaces.size() == static_cast<std::size_t>(Surface::peer) + 1);
  return surfaces;
}

std::string_view to_string(TargetKind target) {
  return target == TargetKind::agent ? "agent" : "upstream";
}

std::optional<TargetKind> target_kind_from_string(std::string_view name) {
  for (TargetKind target : {TargetKind::agent, TargetKind::upstream}) {
    if (to_string(target) == name) return target;
  }
  return std::nullopt;
}

std::optional<Surface> surface_from_string(std::string_view name) {
  auto surfaces = all_surfaces();
  auto found = std::ranges::find(surfaces, name, [](Surface surface) { return to_string(surface); });
  return found == surfaces.end() ? std::nullopt : std::optional(*found);
}

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
