#include "gateway/surfaces/mcp/call_answer.h"

#include "gateway/surfaces/mcp/own_entries.h"
#include "protocol/agent_protocol.h"
#include "protocol/json_object.h"

namespace hive::mcp_surface {

namespace {

constexpr std::string_view approval_meta_key = "myrmex-hive/approval_id";
constexpr std::string_view expiry_meta_key = "myrmex-hive/approval_expires_at";
constexpr std::string_view needed_meta_key = "myrmex-hive/approvals_needed";
constexpr std::string_view retry_meta_key = "myrmex-hive/retry_after_ms";

std::string content_of(std::string_view text) {
  return "[" + json::ObjectText().text("type", "text").text("text", text).take() + "]";
}

std::string outcome_data(const calls::CallResult& result) {
  json::ObjectText data;
  data.text("outcome", protocol::to_string(result.outcome)).text("reason", result.reason);
  if (result.retry_after.count() > 0) data.number("retry_after_ms", result.retry_after.count());
  return data.take();
}

std::string refusal_result(const calls::CallResult& result) {
  json::ObjectText meta;
  meta.text(protocol::outcome_meta_key, protocol::to_string(result.outcome))
      .text(protocol::reason_meta_key, result.reason);
  if (result.retry_after.count() > 0) meta.number(retry_meta_key, result.retry_after.count());
  std::string message = message_of_error(result.body);
  std::string text =
      fmt::format("{} ({}): {}", protocol::to_string(result.outcome), result.reason.empty() ? "error" : result.reason,
                  message.empty() ? "no further word" : message);
  return json::ObjectText().raw("content", content_of(text)).boolean("isError", true).raw("_meta", meta.take()).take();
}

// A client holds a result without isError against the tool's output schema, which the result of a call that has not run
// cannot meet: official SDKs throw it away then. So it says isError, and the text says that nothing has failed.
std::string pending_result(const calls::CallResult& result) {
  std::string expires_at = format_rfc3339(result.approval_expires_at);
  std::string people =
      result.approvals_needed <= 1 ? "another person" : fmt::format("{} other people", result.approvals_needed);
  std::string text = fmt::format(
      "Not run yet: this call waits for the approval of {}, until {}. Approval id: {}. It runs by itself once it is "
      "approved. Fetch what became of it with the tool {} and {{\"id\":\"{}\",\"wait_seconds\":50}}; do not make the "
      "call again.",
      people, expires_at, result.approval_id, approval_result_tool, result.approval_id);
  std::string meta = json::ObjectText()
                         .text(approval_meta_key, result.approval_id)
                         .text(expiry_meta_key, expires_at)
                         .number(needed_meta_key, result.approvals_needed)
                         .text(protocol::reason_meta_key, result.reason)
                         .take();
  return json::ObjectText().raw("content", content_of(text)).boolean("isError", true).raw("_meta", meta).take();
}

}  // namespace

std::string message_of_error(std::string_view raw_error) {
  auto members = json::parse_object(raw_error, mcp::message_limits);
  auto message = members ? json::find(*members, "message") : std::nullopt;
  return message ? json::decode_string(*message).value_or("") : "";
}

std::string tool_error(std::string_view text, std::string_view outcome, std::string_view reason) {
  std::string meta =
      json::ObjectText().text(protocol::outcome_meta_key, outcome).text(protocol::reason_meta_key, reason).take();
  return json::ObjectText().raw("content", content_of(text)).boolean("isError", true).raw("_meta", meta).take();
}

std::string text_result(std::string_view text) {
  return json::ObjectText().raw("content", content_of(text)).take();
}

void answer_tool_call(Exchange& exchange, const calls::CallResult& result, calls::TargetKind target) {
  if (!result.approval_id.empty()) return exchange.finish(pending_result(result));
  if (!result.is_error) return exchange.finish(result.body);
  if (target == calls::TargetKind::upstream && !result.by_gateway) return exchange.fail_as_upstream(result.body);
  exchange.finish(refusal_result(result));
}

void answer_request(Exchange& exchange, const calls::CallResult& result) {
  if (!result.approval_id.empty()) {
    std::string data = json::ObjectText()
                           .text("reason", result.reason)
                           .text("approval_id", result.approval_id)
                           .text("expires_at", format_rfc3339(result.approval_expires_at))
                           .number("approvals_needed", result.approvals_needed)
                           .take();
    return exchange.fail(protocol::internal_error_code,
                         fmt::format("this waits for the approval of other people under the id {}; fetch the result "
                                     "with the tool {}",
                                     result.approval_id, approval_result_tool),
                         data);
  }
  if (!result.is_error) {
    // What is read may change at any time, and depends on who reads.
    return exchange.finish(result.body, {.time_to_live = {}, .scope = mcp::CacheScope::per_caller});
  }
  if (!result.by_gateway) return exchange.fail_as_upstream(result.body);
  fail_with_reason(exchange, result, message_of_error(result.body));
}

void fail_with_reason(Exchange& exchange, const calls::CallResult& result, std::string_view message) {
  exchange.fail(protocol::internal_error_code, message, outcome_data(result));
}

}  // namespace hive::mcp_surface
