#include "gateway/surfaces/rest/agent_json.h"

namespace hive::rest {

namespace {

void append_time(ObjectWriter& object, std::string_view key, WallTime time) {
  if (time != WallTime()) object.text(key, format_rfc3339(time));
}

void append_flapping(ObjectWriter& object, const fleet::Flapping& flapping) {
  std::string details = "{";
  ObjectWriter(details)
      .text("since", format_rfc3339(flapping.since))
      .number("connections", flapping.connections)
      .boolean("contested", flapping.contested)
      .texts("addresses", flapping.addresses);
  object.raw("flapping", details + "}");
}

/// What the reference does not know.
void append_own_fields(ObjectWriter& object, const fleet::AgentStatus& agent) {
  object.text("status", state_text(agent))
      .text("agent_version", agent.agent_version)
      .text("software", agent.software)
      .text("key_fingerprint", agent.key_fingerprint)
      .number("calls_in_flight", agent.calls_in_flight())
      .number("draining_sessions", agent.draining_sessions())
      .number("connections", agent.connections)
      .number("replacements", agent.replacements);
  append_time(object, "first_seen", agent.first_seen);
  append_time(object, "connected_at", agent.connected_at);
  append_time(object, "offline_since", agent.offline_since);
  if (!agent.offline_reason.empty()) object.text("offline_reason", agent.offline_reason);
  append_time(object, "keyless_since", agent.keyless_since);
  if (agent.flapping != nullptr) append_flapping(object, *agent.flapping);
}

}  // namespace

std::string_view os_text(const fleet::AgentStatus& agent) {
  if (!agent.os_version.empty()) return agent.os_version;
  return agent.has_connected() ? "Loading..." : "";
}

std::string_view state_text(const fleet::AgentStatus& agent) {
  if (agent.online) return "online";
  return agent.has_connected() ? "offline" : "never_connected";
}

void AgentCounts::add(const fleet::AgentStatus& agent) {
  ++total;
  if (agent.online) ++online;
  if (!agent.has_connected()) ++never_connected;
  if (agent.flapping != nullptr) ++flapping;
}

void AgentCounts::append_to(ObjectWriter& object) const {
  object.number("total", total)
      .number("online", online)
      .number("offline", total - online - never_connected)
      .number("never_connected", never_connected)
      .number("flapping", flapping);
}

std::string AgentCounts::json() const {
  std::string text = "{";
  ObjectWriter object(text);
  append_to(object);
  return text + "}";
}

void append_status(std::string& out, const fleet::AgentStatus& agent, const std::vector<std::string>& tags) {
  out += '{';
  ObjectWriter object(out);
  object.text("id", agent.id)
      .text("ip", agent.address)
      .text("os_version", os_text(agent))
      .texts("running_services", agent.running_services)
      .texts("open_ports", agent.open_ports)
      .texts("tags", tags)
      .boolean("online", agent.online);
  append_time(object, "last_seen", agent.seen());
  append_own_fields(object, agent);
  out += '}';
}

void append_fleet_entry(std::string& out, const fleet::AgentStatus& agent, const std::vector<std::string>& tags,
                        std::string_view gateway_id, bool with_history) {
  out += '{';
  ObjectWriter object(out);
  object.text("id", agent.id)
      .text("ip", agent.address)
      .text("os", os_text(agent))
      .texts("services", agent.running_services)
      .texts("ports", agent.open_ports)
      .texts("tags", tags)
      .boolean("online", agent.online);
  append_time(object, "last_seen", agent.seen());
  object.raw("latest_metrics", "null").number("history_len", 0);
  if (with_history) object.raw("history", "[]");
  object.text("gateway", gateway_id);
  append_own_fields(object, agent);
  out += '}';
}

}  // namespace hive::rest
