#include <algorithm>

#include "gateway/surfaces/mcp/call_answer.h"
#include "gateway/surfaces/mcp/methods.h"
#include "gateway/surfaces/mcp/own_entries.h"
#include "gateway/surfaces/mcp/server.h"
#include "protocol/json_object.h"

namespace hive::mcp_surface {

namespace {

// Below the time after which common clients give a request up.
constexpr std::int64_t max_wait_seconds = 50;

std::string refused(const policy::Decision& decision) {
  return tool_error(decision.message, protocol::to_string(protocol::Outcome::denied), decision.reason);
}

// What of the gates concerns the gateway's own tools: they count as calls, and need no role, since they show what their
// caller may see anyway, or make calls that pass the gates themselves.
bool is_limited(const Server& server, Exchange& exchange, std::string_view tool, std::string_view arguments) {
  policy::Question question{.principal = exchange.client().principal,
                            .agent = "gateway",
                            .tool = tool,
                            .arguments = arguments,
                            .tier = protocol::Tier::read};
  policy::Decision rate = server.policy()->check_rate(question);
  if (rate.allowed()) return false;
  exchange.finish(refused(rate));
  return true;
}

std::string waiting_text(const calls::Approval& approval) {
  return fmt::format("Still waiting: {} of {} approvals so far, until {}. Ask again with wait_seconds.",
                     approval.votes.size(), approval.needed, format_rfc3339(approval.expires_at));
}

void fetch_approval(const std::shared_ptr<Server>& server, const ExchangePointer& exchange,
                    std::string_view raw_arguments) {
  auto members = json::parse_object(raw_arguments, mcp::message_limits);
  auto raw_id = members ? json::find(*members, "id") : std::nullopt;
  auto id = raw_id ? json::decode_string(*raw_id) : std::nullopt;
  auto raw_wait = members ? json::find(*members, "wait_seconds") : std::nullopt;
  auto wait = raw_wait ? json::decode_integer(*raw_wait) : std::optional<std::int64_t>(0);
  if (!id || !wait || *wait < 0) {
    return exchange->finish(
        tool_error("id must be a string, wait_seconds a whole number from 0 to 50", "denied", "invalid_arguments"));
  }
  calls::Approvals& approvals = *server->dependencies.approvals;
  const policy::Principal& principal = exchange->client().principal;
  auto patience = std::chrono::seconds(std::min(*wait, max_wait_seconds));
  // A client that goes away meanwhile loses nothing: the result stays where it is.
  approvals.result(
      exchange->worker(), principal, *id, patience,
      [server, exchange, id = *id](Result<std::optional<calls::CallResult>> result) {
        if (!result) {
          return exchange->finish(tool_error(result.error().message, "denied", to_string(result.error().code)));
        }
        auto approval = server->dependencies.approvals->find(exchange->client().principal, id);
        if (result->has_value()) return answer_tool_call(*exchange, **result, calls::TargetKind::agent);
        exchange->finish(text_result(approval == nullptr ? "Still waiting." : waiting_text(*approval)));
      });
}

}  // namespace

bool call_own_tool(const std::shared_ptr<Server>& server, const ExchangePointer& exchange, std::string_view name,
                   std::string_view raw_arguments) {
  bool is_list = name == list_agents_tool;
  bool is_call = name == call_agents_tool;
  bool is_result = name == approval_result_tool && server->dependencies.approvals != nullptr;
  if (!is_list && !is_call && !is_result) return false;
  if (is_limited(*server, *exchange, name, raw_arguments)) return true;
  if (is_list) {
    list_agents(*server, *exchange, raw_arguments);
  } else if (is_call) {
    call_agents(server, exchange, raw_arguments);
  } else {
    fetch_approval(server, exchange, raw_arguments);
  }
  return true;
}

}  // namespace hive::mcp_surface
