#include "cli/fleet_view.h"

#include <optional>

#include "protocol/json.h"

namespace hive::cli {

namespace {

constexpr json::Limits answer_limits{.max_bytes = size_t{64} << 20, .max_depth = 128, .max_values = 5'000'000};

using Members = std::vector<json::Member>;

Result<Members> object_of(std::string_view raw, std::string_view what) {
  if (!json::is_object(raw)) return fail(ErrorCode::corrupt, "the gateway's {} is not a JSON object", what);
  return json::parse_object(raw, answer_limits);
}

std::string text_of(const Members& members, std::string_view key) {
  auto raw = json::find(members, key);
  return raw ? json::decode_string(*raw).value_or("") : "";
}

/// The elements of an array member; none when it is missing or null.
Result<std::vector<std::string_view>> elements_of(const Members& members, std::string_view key) {
  auto raw = json::find(members, key);
  if (!raw || json::is_null(*raw)) return std::vector<std::string_view>();
  if (!json::is_array(*raw)) return fail(ErrorCode::corrupt, "the gateway's \"{}\" is not an array", key);
  return json::parse_array(*raw, answer_limits);
}

std::string raw_array(const Members& members, std::string_view key) {
  auto raw = json::find(members, key);
  return raw && json::is_array(*raw) ? std::string(*raw) : "[]";
}

Result<std::vector<std::string>> texts_of(const Members& members, std::string_view key) {
  std::vector<std::string> texts;
  for (std::string_view raw : TRY(elements_of(members, key))) {
    // Ports are texts in the reference, but a number says the same.
    texts.push_back(json::decode_string(raw).value_or(std::string(raw)));
  }
  return texts;
}

Result<AgentView> parse_agent(std::string_view raw) {
  Members members = TRY(object_of(raw, "agent entry"));
  AgentView agent;
  agent.id = text_of(members, "id");
  agent.address = text_of(members, "ip");
  agent.os_version = text_of(members, "os_version");
  agent.services = TRY(texts_of(members, "running_services"));
  agent.ports = TRY(texts_of(members, "open_ports"));
  if (auto online = json::find(members, "online")) agent.online = json::decode_boolean(*online).value_or(true);
  agent.last_seen = text_of(members, "last_seen");
  agent.offline_since = text_of(members, "offline_since");
  agent.has_connected = text_of(members, "status") != "never_connected";
  agent.tags = TRY(texts_of(members, "tags"));
  if (auto flapping = json::find(members, "flapping"); flapping && json::is_object(*flapping)) {
    Members details = TRY(json::parse_object(*flapping, answer_limits));
    agent.flapping_since = text_of(details, "since");
    auto contested = json::find(details, "contested");
    agent.contested = contested && json::decode_boolean(*contested) == true;
  }
  return agent;
}

std::int64_t number_of(const Members& members, std::string_view key) {
  auto raw = json::find(members, key);
  return raw ? json::decode_integer(*raw).value_or(0) : 0;
}

/// Gateways of the reference do not count for us.
FleetCounts counted(const std::vector<AgentView>& agents) {
  FleetCounts counts;
  for (const AgentView& agent : agents) {
    ++counts.total;
    if (agent.online) ++counts.online;
    if (!agent.has_connected) ++counts.never_connected;
    if (!agent.flapping_since.empty()) ++counts.flapping;
  }
  return counts;
}

bool belongs_to(std::string_view tool, std::string_view agent) {
  return tool.size() > agent.size() + 2 && tool.starts_with(agent) && tool.substr(agent.size(), 2) == "__";
}

}  // namespace

Result<FleetView> parse_fleet(std::string_view body) {
  Members members = TRY(object_of(body, "status"));
  FleetView fleet;
  for (std::string_view raw : TRY(elements_of(members, "agents")))
    fleet.agents.push_back(TRY(parse_agent(raw)));
  for (std::string_view raw : TRY(elements_of(members, "upstreams")))
    fleet.upstreams.push_back(TRY(parse_upstream(raw)));
  fleet.raw_agents = raw_array(members, "agents");
  fleet.raw_upstreams = raw_array(members, "upstreams");
  fleet.pending_approvals = number_of(members, "pending_approvals");
  fleet.next_cursor = text_of(members, "next_cursor");
  fleet.counts = counted(fleet.agents);
  if (auto raw = json::find(members, "counts"); raw && json::is_object(*raw)) {
    Members counts = TRY(json::parse_object(*raw, answer_limits));
    fleet.counts = {.total = number_of(counts, "total"),
                    .online = number_of(counts, "online"),
                    .never_connected = number_of(counts, "never_connected"),
                    .flapping = number_of(counts, "flapping")};
  }
  return fleet;
}

std::string next_cursor_of(std::string_view body) {
  auto members = json::parse_object(body, answer_limits);
  return members ? text_of(*members, "next_cursor") : "";
}

Result<std::vector<ToolView>> parse_tools(std::string_view body) {
  Members members = TRY(object_of(body, "list of tools"));
  std::vector<ToolView> tools;
  for (std::string_view raw : TRY(elements_of(members, "tools"))) {
    Members tool = TRY(object_of(raw, "tool entry"));
    auto schema = json::find(tool, "inputSchema");
    tools.push_back({text_of(tool, "name"), text_of(tool, "description"), std::string(schema.value_or(""))});
  }
  return tools;
}

Result<std::string> tools_of_agent(std::string_view body, std::string_view agent) {
  Members members = TRY(object_of(body, "list of tools"));
  std::string kept = "[";
  for (std::string_view raw : TRY(elements_of(members, "tools"))) {
    Members tool = TRY(object_of(raw, "tool entry"));
    if (!agent.empty() && !belongs_to(text_of(tool, "name"), agent)) continue;
    if (kept.size() > 1) kept += ',';
    kept += raw;
  }
  return kept + "]";
}

}  // namespace hive::cli
