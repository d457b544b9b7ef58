#include "base/strings.h"
#include "gateway/surfaces/mcp/call_answer.h"
#include "gateway/surfaces/mcp/methods.h"
#include "gateway/surfaces/mcp/server.h"
#include "gateway/surfaces/rest/fleet_query.h"
#include "protocol/json_object.h"

namespace hive::mcp_surface {

namespace {

// What a model reads costs; it can ask for more, or for less.
constexpr std::string_view default_limit = "100";

/// The arguments as GET /api/fleet takes them.
std::optional<std::string> parameter(const std::vector<json::Member>& arguments, std::string_view name) {
  auto raw = json::find(arguments, name == "q" ? std::string_view("search") : name);
  if (!raw) return name == "limit" ? std::optional<std::string>(default_limit) : std::nullopt;
  auto text = json::decode_string(*raw);
  // Numbers, and whatever else is to be refused.
  return text ? std::move(text) : std::string(*raw);
}

std::string line_of(const fleet::AgentStatus& agent) {
  std::string line = agent.id + ": ";
  if (agent.online) {
    line += "online";
  } else if (!agent.has_connected()) {
    line += "never connected";
  } else {
    WallTime since = agent.offline_since == WallTime() ? agent.seen() : agent.offline_since;
    line += "offline since " + format_rfc3339(since);
  }
  if (agent.flapping == nullptr) return line + "\n";
  return line + fmt::format(", {} since {}\n", agent.flapping->contested ? "contested by two machines" : "flapping",
                            format_rfc3339(agent.flapping->since));
}

std::string object_of(const fleet::AgentStatus& agent, const std::vector<std::string>& tags) {
  json::ObjectText object;
  object.text("id", agent.id).boolean("online", agent.online).texts("tags", tags);
  if (agent.seen() != WallTime()) object.text("last_seen", format_rfc3339(agent.seen()));
  if (agent.offline_since != WallTime()) object.text("offline_since", format_rfc3339(agent.offline_since));
  if (agent.flapping != nullptr) {
    object.text("flapping_since", format_rfc3339(agent.flapping->since))
        .boolean("contested", agent.flapping->contested);
  }
  return object.text("os", agent.os_version).text("agent_version", agent.agent_version).take();
}

}  // namespace

void list_agents(const Server& server, Exchange& exchange, std::string_view raw_arguments) {
  auto arguments = json::parse_object(raw_arguments, mcp::message_limits);
  if (!arguments) return exchange.finish(tool_error(arguments.error().message, "denied", "invalid_arguments"));
  auto config = server.config();
  auto query = rest::FleetQuery::parse([&](std::string_view name) { return parameter(*arguments, name); }, *config);
  if (!query) return exchange.finish(tool_error(query.error().message, "denied", "invalid_arguments"));
  auto policy = server.policy();
  const policy::Principal& principal = exchange.client().principal;
  fleet::SnapshotPointer fleet = server.dependencies.fleet.snapshot();
  rest::FleetQuery::Page page =
      query->page_of(*fleet, [&](const fleet::AgentStatus& agent) { return policy->reaches(principal, agent.id); });
  std::string agents = "[";
  std::string text;
  for (const fleet::AgentPointer& agent : page.agents) {
    if (agents.size() > 1) agents += ',';
    agents += object_of(*agent, query->tags_of(agent->id));
    text += line_of(*agent);
  }
  if (text.empty()) text = "this credential reaches no agent like that\n";
  if (!page.next_cursor.empty()) {
    text +=
        fmt::format("{} of {} agents; more with cursor {}\n", page.agents.size(), page.counts.total, page.next_cursor);
  }
  text.pop_back();
  json::ObjectText structured;
  structured.raw("agents", agents + ']')
      .number("total", static_cast<std::int64_t>(page.counts.total))
      .number("online", static_cast<std::int64_t>(page.counts.online));
  if (!page.next_cursor.empty()) structured.text("next_cursor", page.next_cursor);
  std::string content = "[" + json::ObjectText().text("type", "text").text("text", text).take() + "]";
  exchange.finish(json::ObjectText().raw("content", content).raw("structuredContent", structured.take()).take());
}

}  // namespace hive::mcp_surface
