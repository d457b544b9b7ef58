#include "gateway/surfaces/mcp/upstream_call.h"

#include <algorithm>
#include <ranges>
#include <span>

#include "base/strings.h"
#include "crypto/sha256.h"
#include "gateway/surfaces/mcp/call_answer.h"
#include "gateway/surfaces/mcp/legacy_session.h"
#include "gateway/surfaces/mcp/server.h"
#include "protocol/agent_protocol.h"
#include "protocol/json_object.h"
#include "protocol/mcp/questions.h"

namespace hive::mcp_surface {

namespace {

// Questions that an upstream asks at about the same time go out in one round.
constexpr std::chrono::milliseconds gather_window{20};

// A modern client is known by who it is and what it can do: an upstream that keeps sessions is told both once.
std::string key_of(const Exchange& exchange) {
  const Exchange::Context& context = exchange.context();
  if (!context.caller_key.empty()) return context.caller_key;
  return fmt::format("caller:{}:{}", to_hex(crypto::sha256(exchange.client().principal.identity())),
                     to_hex(crypto::sha256(context.capabilities)));
}

// Whether the protocol lets a request end with questions.
bool may_ask(std::string_view method) {
  return method == "tools/call" || method == "prompts/get" || method == "resources/read";
}

StateBinding binding_of(const Exchange& exchange, const UpstreamRequest& request) {
  return {.identity = exchange.client().principal.identity(),
          .request = operation_digest(request.method, fmt::format("{}\n{}", request.upstream, request.name),
                                      request.arguments)};
}

calls::CallResult too_large_to_keep(const calls::CallResult& result) {
  calls::CallResult replaced;
  replaced.outcome = result.outcome;
  replaced.reason = "result_too_large";
  replaced.by_gateway = true;
  replaced.is_error = true;
  replaced.body = protocol::encode_error_object(
      protocol::internal_error_code, "the call ended while its client was asked, with a result too large to be kept",
      result.outcome, replaced.reason);
  return replaced;
}

// What a server says of its failure: the message of an error, or the one text of a tool's result that is one. nullopt:
// it did not fail.
std::optional<std::string> words_of_failure(const calls::CallResult& result) {
  auto members = json::parse_object(result.body, {.max_bytes = result.body.size()});
  if (!members) return std::nullopt;
  auto text_in = [](std::span<const json::Member> object, std::string_view key) {
    return json::decode_string(json::find(object, key).value_or("")).value_or("");
  };
  if (result.is_error) return result.by_gateway ? std::nullopt : std::optional(text_in(*members, "message"));
  auto raw = json::find(*members, "isError");
  if (!raw || json::decode_boolean(*raw) != true) return std::nullopt;
  auto content = json::find(*members, "content");
  auto blocks = json::parse_array(content.value_or(""), mcp::message_limits);
  if (!blocks || blocks->size() != 1) return "";
  auto block = json::parse_object((*blocks)[0], mcp::message_limits);
  return block ? text_in(*block, "text") : "";
}

// The first capability that a result asks for and the client does not declare; "" if there is none.
std::string undeclared_in(std::string_view raw_result, std::string_view capabilities) {
  auto asked = mcp::parse_input_required(raw_result);
  if (!asked) return {};
  for (const mcp::InputRequest& request : asked->requests) {
    std::string_view capability = mcp::capability_of(request.method);
    if (!capability.empty() && !mcp::has_capability(capabilities, capability)) return std::string(capability);
  }
  return {};
}

void refuse_state(Exchange& exchange, std::string_view why) {
  exchange.fail(protocol::invalid_params_code, why);
}

}  // namespace

UpstreamCall::UpstreamCall(std::shared_ptr<Server> server, ExchangePointer exchange, UpstreamRequest request)
    : server_(std::move(server)),
      request_(std::move(request)),
      key_(key_of(*exchange)),
      capabilities_(exchange->context().capabilities),
      client_(exchange->client()),
      is_modern_(exchange->is_modern()),
      worker_(exchange->worker()),
      exchange_(std::move(exchange)) {}

void UpstreamCall::start() {
  attach(exchange());
  run(request_.params);
}

void UpstreamCall::bring(std::string_view raw_responses) {
  auto members = json::parse_object(raw_responses, mcp::message_limits).value_or(std::vector<json::Member>());
  std::lock_guard lock(mutex_);
  for (const json::Member& member : members | std::views::take(max_questions))
    brought_.emplace(member.key, member.value);
}

void UpstreamCall::attach(const ExchangePointer& exchange) {
  exchange->on_cancel([self = shared_from_this()](std::string_view reason) { self->withdraw(reason); });
}

ExchangePointer UpstreamCall::exchange() const {
  std::lock_guard lock(mutex_);
  return exchange_;
}

void UpstreamCall::run(std::string params) {
  calls::Call call;
  call.principal = client_.principal;
  call.surface = client_.surface;
  call.request_id = client_.request_id;
  call.target = calls::TargetKind::upstream;
  call.agent = request_.upstream;
  bool is_tool = request_.method == "tools/call";
  call.tool = is_tool ? request_.name : request_.method;
  call.arguments = request_.arguments;
  if (!is_tool || !params.empty()) {
    call.method = request_.method;
    call.params = std::move(params);
  }
  call.caller = shared_from_this();
  auto running = server_->dependencies.funnel.run(
      worker_, std::move(call),
      [self = shared_from_this()](calls::CallResult result) { self->on_done(std::move(result)); });
  std::lock_guard lock(mutex_);
  running_ = std::move(running);
}

void UpstreamCall::on_done(calls::CallResult result) {
  ExchangePointer waiting;
  std::map<std::string, Question> unanswered;
  {
    std::lock_guard lock(mutex_);
    running_.reset();
    unanswered.swap(questions_);
    if (exchange_ == nullptr) {
      if (result.body.size() > max_kept_bytes) result = too_large_to_keep(result);
      result_ = std::move(result);
      return;
    }
    waiting = exchange_;
  }
  waiting->worker().dispatch([self = shared_from_this(), waiting, result = std::move(result)]() mutable {
    self->deliver(waiting, std::move(result));
  });
}

void UpstreamCall::deliver(const ExchangePointer& exchange, calls::CallResult result) {
  bool is_result = result.approval_id.empty() && !result.is_error;
  if (is_result && !is_modern_ && mcp::result_type(result.body) == "input_required") {
    return ask_legacy_client(exchange, result.body);
  }
  std::string missing = missing_capability(result);
  {
    std::lock_guard lock(mutex_);
    exchange_.reset();
  }
  if (!missing.empty()) {
    std::string data =
        json::ObjectText().raw("requiredCapabilities", json::ObjectText().raw(missing, "{}").take()).take();
    return exchange->fail(mcp::missing_capability_code, "Missing required client capability: " + missing, data, 400);
  }
  if (request_.method == "tools/call") {
    answer_tool_call(*exchange, result, calls::TargetKind::upstream);
  } else {
    answer_request(*exchange, result);
  }
}

std::string UpstreamCall::missing_capability(const calls::CallResult& result) const {
  // MCP 2026-07-28 wants an error of its own where a request fails for what the client does not declare; the older
  // revisions have none.
  if (!is_modern_ || !result.approval_id.empty()) return {};
  if (!result.is_error && mcp::result_type(result.body) == "input_required") {
    return undeclared_in(result.body, capabilities_);
  }
  std::optional<std::string> words = words_of_failure(result);
  if (!words) return {};
  {
    std::lock_guard lock(mutex_);
    if (!refused_capability_.empty()) return refused_capability_;
  }
  // A legacy server that knows what its client declares does not even ask.
  std::string_view missed = mcp::capability_missed_in(*words);
  return mcp::has_capability(capabilities_, missed) ? std::string() : std::string(missed);
}

void UpstreamCall::withdraw(std::string_view reason) {
  std::shared_ptr<calls::RunningCall> running;
  ExchangePointer dropped;
  std::map<std::string, Question> unanswered;
  {
    std::lock_guard lock(mutex_);
    running = running_;
    dropped.swap(exchange_);
    unanswered.swap(questions_);
  }
  if (running != nullptr) running->cancel(reason);
}

std::optional<std::string> UpstreamCall::log_level() const {
  ExchangePointer current = exchange();
  return current == nullptr ? std::nullopt : current->log_level();
}

bool UpstreamCall::wants_progress() const {
  ExchangePointer current = exchange();
  return current != nullptr && current->wants_progress();
}

void UpstreamCall::notify(std::string_view method, std::string_view raw_params) {
  ExchangePointer current = exchange();
  if (current == nullptr) return;
  if (method == "notifications/progress") current->progress(raw_params);
  if (method == "notifications/message") current->log_message(raw_params);
}

void UpstreamCall::interrupted() {
  if (ExchangePointer current = exchange()) current->interrupt();
}

void UpstreamCall::ask(std::string method, std::string raw_params,
                       std::move_only_function<void(Result<std::string>)> done) {
  std::string_view capability = mcp::capability_of(method);
  if (capability.empty() || !may_ask(request_.method)) {
    return done(fail(ErrorCode::invalid_argument, "a client is not asked {} for {}", method, request_.method));
  }
  if (!mcp::has_capability(capabilities_, capability)) {
    {
      std::lock_guard lock(mutex_);
      refused_capability_ = capability;
    }
    return done(fail(ErrorCode::permission_denied, "the client does not declare the capability {}", capability));
  }
  ExchangePointer current = exchange();
  if (!is_modern_) {
    if (current == nullptr) return done(fail(ErrorCode::cancelled, "the client's request is over"));
    return current->context().session->ask(current, std::move(method), std::move(raw_params), std::move(done));
  }
  bool starts_round = false;
  {
    std::unique_lock lock(mutex_);
    if (questions_.size() >= max_questions) {
      lock.unlock();
      return done(fail(ErrorCode::resource_exhausted, "{} questions wait for the client already", max_questions));
    }
    std::string key = key_for(method, raw_params);
    if (auto known = brought_.extract(key); !known.empty() && mcp::is_answer_to(method, known.mapped())) {
      lock.unlock();
      return done(std::move(known.mapped()));
    }
    questions_.emplace(std::move(key), Question{std::move(method), std::move(raw_params), std::move(done)});
    // Held calls ask what is new when their client comes back.
    starts_round = exchange_ != nullptr && !round_ends_;
    if (starts_round) round_ends_ = true;
    current = exchange_;
  }
  if (!starts_round) return;
  current->worker().dispatch([self = shared_from_this(), current] {
    current->set_timer(gather_window, [self, current] { self->end_round(current); });
  });
}

std::string UpstreamCall::key_for(std::string_view method, std::string_view raw_params) {
  std::string base = mcp::question_key(method, raw_params);
  std::string key = base;
  for (unsigned n = 2; !keys_.insert(key).second; ++n)
    key = fmt::format("{}_{}", base, n);
  return key;
}

void UpstreamCall::end_round(const ExchangePointer& exchange) {
  std::vector<mcp::InputRequest> requests;
  {
    std::lock_guard lock(mutex_);
    round_ends_ = false;
    if (exchange_ != exchange || questions_.empty()) return;
    for (const auto& [key, question] : questions_)
      requests.push_back({.key = key, .method = question.method, .params = question.params});
    exchange_.reset();
  }
  Result<std::string> state = server_->held.hold(shared_from_this(), binding_of(*exchange, request_));
  if (!state) {
    withdraw("its client could not be asked");
    if (request_.method == "tools/call") {
      return exchange->finish(tool_error(state.error().message, "cancelled", "too_many_held_calls"));
    }
    return exchange->fail(protocol::internal_error_code, state.error().message);
  }
  exchange->on_cancel(nullptr);
  exchange->finish(mcp::encode_input_required(requests, *state));
}

std::expected<UpstreamCall::Answers, std::string> UpstreamCall::answers_in(std::string_view raw_responses) const {
  Answers answers;
  if (raw_responses.empty()) return answers;
  auto members = json::parse_object(raw_responses, mcp::message_limits);
  if (!members) return std::unexpected("params.inputResponses must be an object");
  std::lock_guard lock(mutex_);
  for (const json::Member& member : *members) {
    auto question = questions_.find(member.key);
    if (question == questions_.end()) continue;
    if (!mcp::is_answer_to(question->second.method, member.value)) {
      return std::unexpected(
          fmt::format("inputResponses.{} is not a result of {}", member.key, question->second.method));
    }
    answers.emplace(member.key, member.value);
  }
  return answers;
}

void UpstreamCall::resume(const ExchangePointer& exchange, std::string_view state, std::string_view raw_responses) {
  auto answers = answers_in(raw_responses);
  if (!answers) return refuse_state(*exchange, answers.error());
  if (!server_->held.take(state)) {
    return refuse_state(*exchange, "requestState was used already; make the request again without it");
  }
  attach(exchange);
  std::optional<calls::CallResult> result;
  std::vector<std::pair<Question, std::string>> answered;
  bool asks_again = false;
  {
    std::lock_guard lock(mutex_);
    exchange_ = exchange;
    result.swap(result_);
    for (auto& [key, answer] : *answers) {
      auto found = questions_.find(key);
      if (found == questions_.end()) continue;
      answered.emplace_back(std::move(found->second), std::move(answer));
      questions_.erase(found);
    }
    asks_again = !result && !questions_.empty();
    if (asks_again) round_ends_ = true;
  }
  for (auto& [question, answer] : answered)
    question.done(std::move(answer));
  if (result) return deliver(exchange, *std::move(result));
  if (asks_again) end_round(exchange);
}

void UpstreamCall::give_up(const ExchangePointer& exchange, std::string_view why) {
  {
    std::lock_guard lock(mutex_);
    exchange_.reset();
  }
  if (request_.method == "tools/call") return exchange->finish(tool_error(why, "failure", "not_answered"));
  exchange->fail(protocol::internal_error_code, why);
}

void call_upstream(const std::shared_ptr<Server>& server, const ExchangePointer& exchange, UpstreamRequest request) {
  auto raw_state = exchange->parameter("requestState");
  auto responses = exchange->parameter("inputResponses");
  // Only modern clients speak so; in the older revisions the words mean nothing.
  if (!exchange->is_modern() || (!raw_state && !responses)) {
    return std::make_shared<UpstreamCall>(server, exchange, std::move(request))->start();
  }
  if (responses && !json::is_object(*responses)) {
    return refuse_state(*exchange, "params.inputResponses must be an object");
  }
  bool passes_through = server->speaks_modern(request.upstream);
  if (raw_state) {
    auto state = json::decode_string(*raw_state);
    if (!state) return refuse_state(*exchange, "params.requestState must be a string");
    auto held = server->held.find(*state, binding_of(*exchange, request));
    if (held) return (*held)->resume(exchange, *state, responses.value_or(""));
    // A modern upstream knows its own states.
    if (!passes_through) return refuse_state(*exchange, held.error());
  }
  if (passes_through) {
    if (request.params.empty()) {
      request.params = json::ObjectText().text("name", request.name).raw("arguments", request.arguments).take();
    }
    std::vector<mcp::MemberChange> changes;
    if (responses) changes.push_back({"inputResponses", *responses});
    if (raw_state) changes.push_back({"requestState", *raw_state});
    request.params = mcp::with_members(request.params, changes);
  }
  auto call = std::make_shared<UpstreamCall>(server, exchange, std::move(request));
  if (responses && !passes_through) call->bring(*responses);
  call->start();
}

}  // namespace hive::mcp_surface
