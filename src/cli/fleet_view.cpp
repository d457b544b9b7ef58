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
  return agent;
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
  if (auto pending = json::find(members, "pending_approvals")) {
    fleet.pending_approvals = json::decode_integer(*pending).value_or(0);
  }
  return fleet;
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
    if (!belongs_to(text_of(tool, "name"), agent)) continue;
    if (kept.size() > 1) kept += ',';
    kept += raw;
  }
  return kept + "]";
}

}  // namespace hive::cli
