#include "gateway/calls/results.h"

#include "base/utf8.h"
#include "protocol/agent_protocol.h"

namespace hive::calls {

using protocol::Outcome;

namespace {

constexpr std::size_t max_detail_bytes = 512;

CallResult without_answer(bool was_sent, const std::string& reason, std::string_view detail) {
  CallResult result;
  result.by_gateway = true;
  result.is_error = true;
  result.reason = reason;
  result.outcome = was_sent ? Outcome::unknown : Outcome::denied;
  result.body = protocol::encode_error_object(protocol::internal_error_code, detail, result.outcome, reason);
  return result;
}

// An upstream knows nothing of our fields: whether its tool went wrong stands in isError, and an error may also mean
// that nothing ran, which cannot be told apart.
CallResult from_upstream(bool is_error, std::string body) {
  CallResult result;
  result.is_error = is_error;
  result.body = std::move(body);
  auto members = json::parse_object(result.body, {.max_bytes = result.body.size()});
  auto marked = members ? json::find(*members, "isError") : std::nullopt;
  bool went_wrong = is_error || !members || (marked && json::decode_boolean(*marked) == true);
  result.outcome = went_wrong ? Outcome::failure : Outcome::success;
  if (went_wrong) result.reason = is_error ? "upstream_error" : "tool_error";
  return result;
}

}  // namespace

CallResult refusal(std::string reason, std::string_view message, Outcome outcome) {
  CallResult result;
  result.outcome = outcome;
  result.by_gateway = true;
  result.is_error = true;
  result.body = protocol::encode_error_object(protocol::internal_error_code, message, outcome, reason);
  result.reason = std::move(reason);
  return result;
}

CallResult from_reply(fleet::AgentReply reply) {
  if (reply.kind != fleet::ReplyKind::result && reply.kind != fleet::ReplyKind::error) {
    return without_answer(reply.kind != fleet::ReplyKind::not_sent, reply.reason, reply.detail);
  }
  CallResult result;
  result.is_error = reply.kind == fleet::ReplyKind::error;
  protocol::Verdict verdict =
      result.is_error ? protocol::classify_error(reply.body) : protocol::classify_result(reply.body);
  result.outcome = verdict.outcome;
  result.reason = std::move(verdict.reason);
  result.body = std::move(reply.body);
  return result;
}

CallResult from_reply(upstreams::Reply reply) {
  bool is_error = reply.kind == upstreams::ReplyKind::error;
  if (!is_error && reply.kind != upstreams::ReplyKind::result) {
    return without_answer(reply.kind != upstreams::ReplyKind::not_sent, reply.reason, reply.detail);
  }
  return from_upstream(is_error, std::move(reply.body));
}

std::string message_of(std::string_view error) {
  auto members = json::parse_object(error, {.max_bytes = error.size()});
  auto message = members ? json::find(*members, "message") : std::nullopt;
  std::string text = message ? json::decode_string(*message).value_or("") : "";
  text.resize(utf8::truncate(text, max_detail_bytes).size());
  return text;
}

}  // namespace hive::calls
