// Where a modern upstream ends a call with questions: a legacy client is asked them, and the call is made again.
#include "gateway/surfaces/mcp/legacy_session.h"
#include "gateway/surfaces/mcp/server.h"
#include "gateway/surfaces/mcp/upstream_call.h"
#include "protocol/json_object.h"

namespace hive::mcp_surface {

namespace {
// For an upstream that asks nothing and only wants to be called again.
constexpr std::chrono::milliseconds pause_between_rounds{250};
}  // namespace

void UpstreamCall::ask_legacy_client(const ExchangePointer& exchange, std::string_view raw_result) {
  auto asked = mcp::parse_input_required(raw_result);
  if (!asked)
    return give_up(exchange,
                   fmt::format("{} asks in a way that cannot be read: {}", request_.upstream, asked.error().message));
  if (++round_ > max_rounds) return give_up(exchange, fmt::format("{} asks without end", request_.upstream));
  asked_ = *std::move(asked);
  answered_.clear();
  if (asked_.requests.size() > max_questions) {
    return give_up(exchange, fmt::format("{} asks more than {} questions at once", request_.upstream, max_questions));
  }
  for (const mcp::InputRequest& question : asked_.requests) {
    std::string_view capability = mcp::capability_of(question.method);
    if (capability.empty() || !mcp::has_capability(capabilities_, capability)) {
      return give_up(exchange,
                     fmt::format("{} asks {}, which the client does not declare", request_.upstream, question.method));
    }
  }
  if (asked_.requests.empty()) {
    if (asked_.request_state.empty()) return give_up(exchange, request_.upstream + " asks for nothing");
    return exchange->set_timer(pause_between_rounds,
                               [self = shared_from_this(), exchange] { self->run_again(exchange); });
  }
  for (const mcp::InputRequest& question : asked_.requests) {
    exchange->context().session->ask(
        exchange, question.method, question.params,
        [self = shared_from_this(), exchange, key = question.key](Result<std::string> answer) {
          exchange->worker().dispatch([self, exchange, key, answer = std::move(answer)]() mutable {
            self->on_answer(exchange, key, std::move(answer));
          });
        });
  }
}

void UpstreamCall::on_answer(const ExchangePointer& exchange, const std::string& key, Result<std::string> answer) {
  if (exchange->is_over()) return;
  if (!answer) return give_up(exchange, answer.error().message);
  answered_[key] = *std::move(answer);
  if (answered_.size() == asked_.requests.size()) run_again(exchange);
}

void UpstreamCall::run_again(const ExchangePointer& exchange) {
  if (exchange->is_over()) return;
  std::string base = request_.params;
  if (base.empty()) {
    base = json::ObjectText().text("name", request_.name).raw("arguments", request_.arguments).take();
  }
  std::string responses = encode_answers(answered_);
  std::vector<mcp::MemberChange> changes;
  if (!answered_.empty()) changes.push_back({"inputResponses", responses});
  if (!asked_.request_state.empty()) changes.push_back({"requestState", asked_.request_state});
  run(mcp::with_members(base, changes));
}

std::string encode_answers(const std::map<std::string, std::string>& answers) {
  json::ObjectText object;
  for (const auto& [key, answer] : answers)
    object.raw(key, answer);
  return object.take();
}

}  // namespace hive::mcp_surface
