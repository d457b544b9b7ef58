#include "base/strings.h"
#include "gateway/surfaces/mcp/call_answer.h"
#include "gateway/surfaces/mcp/methods.h"
#include "gateway/surfaces/mcp/own_entries.h"
#include "gateway/surfaces/mcp/server.h"
#include "gateway/surfaces/mcp/upstream_call.h"
#include "protocol/agent_protocol.h"
#include "protocol/json_object.h"

namespace hive::mcp_surface {

namespace {

void answer_json(Exchange& exchange, std::string_view uri, std::string_view text) {
  std::string content =
      json::ObjectText().text("uri", uri).text("mimeType", "application/json").text("text", text).take();
  exchange.finish(json::ObjectText().raw("contents", "[" + content + "]").take(),
                  {.time_to_live = {}, .scope = mcp::CacheScope::per_caller});
}

// A resource cannot be asked for a part of it; more than this no model reads.
constexpr std::size_t max_agents_in_fleet = 500;

void read_fleet(const Server& server, Exchange& exchange) {
  auto policy = server.policy();
  const policy::Principal& principal = exchange.client().principal;
  std::string agents = "[";
  std::int64_t total = 0;
  std::int64_t online = 0;
  fleet::SnapshotPointer snapshot = server.dependencies.fleet.snapshot();
  for (const fleet::AgentPointer& agent : snapshot->agents) {
    if (!policy->reaches(principal, agent->id)) continue;
    if (agent->online) ++online;
    if (static_cast<std::size_t>(total++) >= max_agents_in_fleet) continue;
    if (agents.size() > 1) agents += ',';
    agents += agent_json(server, *agent);
  }
  json::ObjectText fleet;
  fleet.number("total", total).number("online", online);
  if (static_cast<std::size_t>(total) > max_agents_in_fleet) {
    fleet.text("note", fmt::format("the first {} agents; gateway__list_agents lists them all, page by page",
                                   max_agents_in_fleet));
  }
  answer_json(exchange, fleet_uri, fleet.raw("agents", agents + ']').take());
}

// The measured values alone, where the agent gives them as such.
std::string metrics_text(std::string_view raw_result) {
  auto members = json::parse_object(raw_result, mcp::message_limits);
  auto structured = members ? json::find(*members, "structuredContent") : std::nullopt;
  if (structured) return std::string(*structured);
  auto content = members ? json::find(*members, "content") : std::nullopt;
  auto blocks = content ? json::parse_array(*content, mcp::message_limits) : Result<std::vector<std::string_view>>();
  if (blocks && !blocks->empty()) {
    auto block = json::parse_object(blocks->front(), mcp::message_limits);
    auto text = block ? json::find(*block, "text") : std::nullopt;
    if (text) return json::decode_string(*text).value_or("");
  }
  return std::string(raw_result);
}

std::string first_text(std::string_view raw_result) {
  auto members = json::parse_object(raw_result, mcp::message_limits);
  auto content = members ? json::find(*members, "content") : std::nullopt;
  return content ? metrics_text(json::ObjectText().raw("content", *content).take()) : "the measurement failed";
}

void read_metrics(const std::shared_ptr<Server>& server, const ExchangePointer& exchange, std::string agent,
                  std::string uri) {
  call_agent(server, exchange, std::move(agent), "get_metrics", "{}",
             [exchange, uri = std::move(uri)](const calls::CallResult& result) {
               if (!result.approval_id.empty()) return answer_request(*exchange, result);
               if (result.is_error) return fail_with_reason(*exchange, result, message_of_error(result.body));
               if (result.outcome != protocol::Outcome::success) {
                 return fail_with_reason(*exchange, result, first_text(result.body));
               }
               answer_json(*exchange, uri, metrics_text(result.body));
             });
}

void read_agent(const std::shared_ptr<Server>& server, const ExchangePointer& exchange, const std::string& uri) {
  std::string_view rest = std::string_view(uri).substr(agents_uri.size());
  bool wants_metrics = rest.ends_with(metrics_suffix);
  if (wants_metrics) rest.remove_suffix(metrics_suffix.size());
  const policy::Principal& principal = exchange->client().principal;
  auto agent = server->policy()->reaches(principal, rest) ? server->dependencies.fleet.find(rest) : nullptr;
  // The same words, whether it is out of reach or not there.
  if (!agent) return exchange->fail_not_found(uri);
  if (wants_metrics) return read_metrics(server, exchange, agent->id, uri);
  answer_json(*exchange, uri, agent_json(*server, *agent));
}

void read_audit_entry(const std::shared_ptr<Server>& server, const ExchangePointer& exchange, const std::string& uri) {
  const policy::Principal& principal = exchange->client().principal;
  auto seq = parse_int64(std::string_view(uri).substr(audit_uri.size()));
  bool may_read = principal.role == policy::Role::admin && principal.scope() == nullptr;
  if (!may_read || !seq || *seq < 0 || !server->dependencies.read_audit) return exchange->fail_not_found(uri);
  server->dependencies.runtime.run_blocking([server, exchange, uri, number = static_cast<std::uint64_t>(*seq)] {
    Result<audit::Page> page = server->dependencies.read_audit({.before_seq = number + 1, .limit = 1});
    exchange->worker().post([exchange, uri, number, page = std::move(page)] {
      if (!page) return exchange->fail(protocol::internal_error_code, page.error().message);
      // The newest entry before the next number is this one, if it exists at all.
      auto members = page->entries.empty() ? Result<std::vector<json::Member>>()
                                           : json::parse_object(page->entries.front(), mcp::message_limits);
      auto raw = members ? json::find(*members, "seq") : std::nullopt;
      auto found = raw ? json::decode_integer(*raw) : std::nullopt;
      if (!found || static_cast<std::uint64_t>(*found) != number) return exchange->fail_not_found(uri);
      answer_json(*exchange, uri, page->entries.front());
    });
  });
}

}  // namespace

std::string agent_json(const Server& server, const fleet::AgentStatus& agent) {
  json::ObjectText object;
  object.text("id", agent.id).boolean("online", agent.online);
  if (agent.seen() != WallTime()) object.text("last_seen", format_rfc3339(agent.seen()));
  if (agent.connected_at != WallTime()) object.text("connected_at", format_rfc3339(agent.connected_at));
  if (agent.offline_since != WallTime()) {
    object.text("offline_since", format_rfc3339(agent.offline_since)).text("offline_reason", agent.offline_reason);
  }
  if (agent.flapping != nullptr) {
    object.text("flapping_since", format_rfc3339(agent.flapping->since))
        .boolean("contested", agent.flapping->contested);
  }
  object.text("address", agent.address)
      .text("os", agent.os_version)
      .text("agent_version", agent.agent_version)
      .texts("services", agent.running_services)
      .texts("open_ports", agent.open_ports);
  auto config = server.config();
  if (auto tags = config->agent_tags.find(agent.id); tags != config->agent_tags.end())
    object.texts("tags", tags->second);
  object.number("calls_in_flight", agent.calls_in_flight());
  return object.take();
}

void read_resource(const std::shared_ptr<Server>& server, const ExchangePointer& exchange) {
  auto uri = exchange->required_text("uri");
  if (!uri) return;
  if (*uri == fleet_uri) return read_fleet(*server, *exchange);
  if (uri->starts_with(agents_uri)) return read_agent(server, exchange, *uri);
  if (uri->starts_with(audit_uri)) return read_audit_entry(server, exchange, *uri);
  auto* upstreams = server->dependencies.upstreams;
  auto item = upstreams == nullptr || uri->starts_with("hive://") ? std::nullopt : upstreams->find_resource(*uri);
  if (!item || !server->policy()->reaches(exchange->client().principal, item->upstream, resource_gate)) {
    return exchange->fail_not_found(*uri);
  }
  std::string params = json::ObjectText().text("uri", *uri).take();
  call_upstream(server, exchange,
                {.upstream = item->upstream,
                 .method = "resources/read",
                 .name = *uri,
                 .arguments = "{}",
                 .params = std::move(params)});
}

}  // namespace hive::mcp_surface
