#include "base/strings.h"
#include "base/utf8.h"
#include "gateway/surfaces/mcp/call_answer.h"
#include "gateway/surfaces/mcp/methods.h"
#include "gateway/surfaces/mcp/server.h"
#include "gateway/surfaces/mcp/upstream_call.h"
#include "protocol/agent_protocol.h"

namespace hive::mcp_surface {

namespace {

constexpr std::string_view wait_key = "myrmex-hive/wait_seconds";
constexpr std::int64_t max_wait_seconds = 86'400;

/// How long a call may wait for an agent that is due back; nullopt where the request says something else than a number
/// of seconds.
std::optional<std::chrono::seconds> wait_of(const Exchange& exchange) {
  auto meta = exchange.parameter("_meta");
  auto members = meta ? json::parse_object(*meta, mcp::message_limits) : Result<std::vector<json::Member>>();
  auto raw = members ? json::find(*members, wait_key) : std::nullopt;
  if (!raw) return std::chrono::seconds(0);
  auto seconds = json::decode_integer(*raw);
  if (!seconds || *seconds < 0 || *seconds > max_wait_seconds) return std::nullopt;
  return std::chrono::seconds(*seconds);
}

void call_tool_of_agent(const std::shared_ptr<Server>& server, const ExchangePointer& exchange, std::string agent,
                        std::string tool, std::string arguments) {
  if (exchange->is_modern() && exchange->parameter("requestState")) {
    return exchange->fail(protocol::invalid_params_code, "requestState belongs to no call of this tool");
  }
  call_agent(
      server, exchange, std::move(agent), std::move(tool), std::move(arguments),
      [exchange](const calls::CallResult& result) { answer_tool_call(*exchange, result, calls::TargetKind::agent); });
}

// A name that the catalog does not have. What an agent is called holds no "__", so the name says whom it means.
void call_unlisted(const std::shared_ptr<Server>& server, const ExchangePointer& exchange, const std::string& name,
                   std::string arguments) {
  calls::ToolAddress address = calls::split_tool_name(name);
  const fleet::Fleet& fleet = server->dependencies.fleet;
  if (check_agent_id(address.agent) && !address.tool.empty()) {
    // The tool of an agent that has just come, or that is away; or one that the gates refuse, in the words that are the
    // same whether it exists or not.
    auto agent = fleet.find(address.agent);
    bool may_be_there = agent && (!agent->online || agent->has_tool(address.tool));
    if (may_be_there || !server->policy()->reaches(exchange->client().principal, address.agent, address.tool)) {
      return call_tool_of_agent(server, exchange, std::string(address.agent), std::string(address.tool),
                                std::move(arguments));
    }
  }
  constexpr std::size_t shown = 128;
  exchange->fail(protocol::invalid_params_code, "Unknown tool: " + std::string(utf8::truncate(name, shown)));
}

}  // namespace

void call_agent(const std::shared_ptr<Server>& server, const ExchangePointer& exchange, std::string agent,
                std::string tool, std::string raw_arguments,
                std::move_only_function<void(const calls::CallResult&)> done) {
  calls::Call call;
  call.principal = exchange->client().principal;
  call.surface = exchange->client().surface;
  call.request_id = exchange->client().request_id;
  call.agent = std::move(agent);
  call.tool = std::move(tool);
  call.arguments = std::move(raw_arguments);
  call.wait_for_agent = wait_of(*exchange).value_or(std::chrono::seconds(0));
  if (exchange->wants_progress()) {
    call.on_progress = [exchange](std::string_view raw_params) { exchange->progress(raw_params); };
  }
  auto running = server->dependencies.funnel.run(
      exchange->worker(), std::move(call),
      [done = std::move(done)](const calls::CallResult& result) mutable { done(result); });
  exchange->on_cancel([running = std::move(running)](std::string_view reason) { running->cancel(reason); });
}

void call_tool(const std::shared_ptr<Server>& server, const ExchangePointer& exchange) {
  auto name = exchange->required_text("name");
  if (!name) return;
  std::string arguments = "{}";
  if (auto raw = exchange->parameter("arguments"); raw && !json::is_null(*raw)) {
    if (!json::is_object(*raw)) {
      return exchange->fail(protocol::invalid_params_code, "params.arguments must be an object");
    }
    arguments = *raw;
  }
  if (!wait_of(*exchange)) {
    return exchange->fail(
        protocol::invalid_params_code,
        fmt::format("params._meta {} must be a whole number from 0 to {}", wait_key, max_wait_seconds));
  }
  auto catalog = server->catalogs->current();
  std::optional<Entry> tool = catalog->of(Kind::tools).find(*name);
  if (!tool) return call_unlisted(server, exchange, *name, std::move(arguments));
  switch (tool->owner) {
    case Owner::gateway:
      if (call_own_tool(server, exchange, *name, arguments)) return;
      return exchange->fail(protocol::invalid_params_code, "Unknown tool: " + *name);
    case Owner::agent:
      return call_tool_of_agent(server, exchange, tool->target, tool->own_name, std::move(arguments));
    case Owner::upstream:
      return call_upstream(server, exchange,
                           {.upstream = tool->target,
                            .method = "tools/call",
                            .name = tool->own_name,
                            .arguments = std::move(arguments),
                            .params = {}});
  }
}

}  // namespace hive::mcp_surface
