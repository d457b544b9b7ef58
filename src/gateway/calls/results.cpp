#include "gateway/calls/results.h"

#include "base/utf8.h"
#include "protocol/agent_protocol.h"

namespace hive::calls {

using protocol::Outcome;

namespace {

constexpr std::size_t max_detail_bytes = 512;

CallResult without_answer(const fleet::AgentReply& reply) {
  CallResult result;
  result.by_gateway = true;
  result.is_error = true;
  result.reason = reply.reason;
  result.outcome = reply.kind == fleet::ReplyKind::not_sent ? Outcome::denied : Outcome::unknown;
  result.body =
      protocol::encode_error_object(protocol::internal_error_code, reply.detail, result.outcome, result.reason);
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
  if (reply.kind != fleet::ReplyKind::result && reply.kind != fleet::ReplyKind::error) return without_answer(reply);
  CallResult result;
  result.is_error = reply.kind == fleet::ReplyKind::error;
  protocol::Verdict verdict =
      result.is_error ? protocol::classify_error(reply.body) : protocol::classify_result(reply.body);
  result.outcome = verdict.outcome;
  result.reason = std::move(verdict.reason);
  result.body = std::move(reply.body);
  return result;
}

std::string message_of(std::string_view error) {
  auto members = json::parse_object(error, {.max_bytes = error.size()});
  auto message = members ? json::find(*members, "message") : std::nullopt;
  std::string text = message ? json::decode_string(*message).value_or("") : "";
  text.resize(utf8::truncate(text, max_detail_bytes).size());
  return text;
}

}  // namespace hive::calls
