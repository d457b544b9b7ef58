#include "gateway/fleet/agent_status.h"

#include <algorithm>

#include "base/strings.h"

namespace hive::fleet {

namespace {

constexpr auto id_of = [](const AgentPointer& agent) -> std::string_view { return agent->id; };

}  // namespace

WallTime AgentStatus::seen() const {
  std::int64_t ns = activity == nullptr ? 0 : activity->last_seen_ns.load(std::memory_order_relaxed);
  return ns == 0 ? last_seen : WallTime(WallTime::duration(ns));
}

std::uint32_t AgentStatus::calls_in_flight() const {
  return activity == nullptr ? 0 : activity->calls_in_flight.load(std::memory_order_relaxed);
}

std::uint32_t AgentStatus::draining_sessions() const {
  return activity == nullptr ? 0 : activity->draining_sessions.load(std::memory_order_relaxed);
}

bool AgentStatus::has_tool(std::string_view tool) const {
  return online && tools != nullptr && std::ranges::find(*tools, tool, &Tool::name) != tools->end();
}

std::string offline_text(const AgentStatus& agent) {
  if (!agent.has_connected()) return fmt::format("agent {} has a key, but never connected", agent.id);
  WallTime since = agent.offline_since == WallTime() ? agent.seen() : agent.offline_since;
  return fmt::format("agent {} is offline since {}", agent.id, format_rfc3339(since));
}

AgentPointer FleetSnapshot::find(std::string_view id) const {
  auto found = std::ranges::lower_bound(agents, id, {}, id_of);
  return found != agents.end() && (*found)->id == id ? *found : nullptr;
}

std::size_t FleetSnapshot::behind(std::string_view id) const {
  return static_cast<std::size_t>(std::ranges::upper_bound(agents, id, {}, id_of) - agents.begin());
}

}  // namespace hive::fleet
