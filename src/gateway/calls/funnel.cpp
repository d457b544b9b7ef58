#include "gateway/calls/funnel.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <unordered_set>

#include "base/log.h"
#include "base/utf8.h"
#include "crypto/random.h"
#include "protocol/agent_protocol.h"

namespace hive::calls {

using protocol::Outcome;

/// The key to the fleet's private door; defined here so that nothing else can use it.
class FunnelAccess {
 public:
  static std::uint64_t send(fleet::Fleet& fleet, std::string_view agent, fleet::AgentRequest request) {
    return fleet.send(agent, std::move(request));
  }
  static void cancel(fleet::Fleet& fleet, std::string_view agent, std::uint64_t ticket, std::string reason) {
    fleet.cancel(agent, ticket, std::move(reason));
  }
};

namespace {

constexpr size_t max_detail_bytes = 512;

CallResult refusal(std::string reason, std::string_view message) {
  CallResult result;
  result.outcome = Outcome::denied;
  result.by_gateway = true;
  result.is_error = true;
  result.body = protocol::encode_error_object(protocol::internal_error_code, message, result.outcome, reason);
  result.reason = std::move(reason);
  return result;
}

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

// The "message" of an error object, for the log.
std::string message_of(std::string_view error) {
  auto members = json::parse_object(error, {.max_bytes = error.size()});
  auto message = members ? json::find(*members, "message") : std::nullopt;
  std::string text = message ? json::decode_string(*message).value_or("") : "";
  text.resize(utf8::truncate(text, max_detail_bytes).size());
  return text;
}

class FunnelImpl;

// One call on its way through the gates. Steps follow one another on different threads, never two at once; cancel() may
// come from any thread at any time.
class Passage final : public RunningCall, public std::enable_shared_from_this<Passage> {
 public:
  Passage(FunnelImpl& funnel, net::Worker& worker, Call call, std::move_only_function<void(CallResult)> done)
      : funnel_(funnel), worker_(worker), call_(std::move(call)), done_(std::move(done)) {}

  void start();
  void cancel(std::string_view reason) override;

 private:
  std::optional<CallResult> ask_gates(const policy::Policy& policy);
  void write_intent();
  void send();
  void on_reply(fleet::AgentReply reply);
  void end(CallResult result);
  void deliver(CallResult result);
  [[nodiscard]] audit::Record record(audit::RecordKind kind) const;

  FunnelImpl& funnel_;
  net::Worker& worker_;
  Call call_;
  std::move_only_function<void(CallResult)> done_;
  std::string call_id_;
  protocol::Tier tier_ = protocol::Tier::write;
  SteadyTime started_;
  bool intent_written_ = false;

  std::mutex mutex_;
  bool ended_ = false;         // guarded by mutex_
  std::uint64_t ticket_ = 0;   // guarded by mutex_
  std::string cancel_reason_;  // guarded by mutex_; not empty: withdrawn
};

class FunnelImpl final : public Funnel {
 public:
  FunnelImpl(fleet::Fleet& fleet, std::shared_ptr<const policy::Policy> policy, audit::Log* log, const Clock& clock,
             Options options)
      : fleet_(fleet), log_(log), clock_(clock), options_(options), policy_(std::move(policy)) {}

  std::shared_ptr<RunningCall> run(net::Worker& worker, Call call,
                                   std::move_only_function<void(CallResult)> done) override {
    auto passage = std::make_shared<Passage>(*this, worker, std::move(call), std::move(done));
    {
      std::lock_guard lock(mutex_);
      running_.insert(passage);
    }
    passage->start();
    return passage;
  }

  void set_policy(std::shared_ptr<const policy::Policy> policy) override {
    std::lock_guard lock(mutex_);
    policy_ = std::move(policy);
  }

  void drain(net::Task drained) override {
    {
      std::lock_guard lock(mutex_);
      draining_ = true;
      if (!running_.empty()) {
        drained_ = std::move(drained);
        return;
      }
    }
    drained();
  }

  void cancel_all(std::string_view reason) override {
    std::vector<std::shared_ptr<Passage>> running;
    {
      std::lock_guard lock(mutex_);
      running.assign(running_.begin(), running_.end());
    }
    for (const auto& passage : running)
      passage->cancel(reason);
  }

  [[nodiscard]] std::size_t in_flight() const override {
    std::lock_guard lock(mutex_);
    return running_.size();
  }

  void on_ended(const std::shared_ptr<Passage>& passage) {
    net::Task drained;
    {
      std::lock_guard lock(mutex_);
      running_.erase(passage);
      if (running_.empty()) drained = std::exchange(drained_, nullptr);
    }
    if (drained) drained();
  }

  [[nodiscard]] std::shared_ptr<const policy::Policy> policy() const {
    std::lock_guard lock(mutex_);
    return policy_;
  }
  [[nodiscard]] bool draining() const {
    std::lock_guard lock(mutex_);
    return draining_;
  }
  [[nodiscard]] std::string next_call_id() {
    return fmt::format("{}-{}", boot_id_, next_call_.fetch_add(1, std::memory_order_relaxed));
  }

  fleet::Fleet& fleet_;
  audit::Log* const log_;
  const Clock& clock_;
  const Options options_;

 private:
  // Call ids are unique over restarts: intents and outcomes of different runs of the gateway must never be joined.
  const std::string boot_id_ = crypto::random_hex(4);
  std::atomic<std::uint64_t> next_call_ = 1;
  mutable std::mutex mutex_;
  std::shared_ptr<const policy::Policy> policy_;          // guarded by mutex_
  std::unordered_set<std::shared_ptr<Passage>> running_;  // guarded by mutex_
  bool draining_ = false;                                 // guarded by mutex_
  net::Task drained_;                                     // guarded by mutex_
};

void Passage::start() {
  started_ = funnel_.clock_.steady_now();
  call_id_ = funnel_.next_call_id();
  auto policy = funnel_.policy();
  tier_ = policy->tier_of(call_.tool);
  if (auto refused = ask_gates(*policy)) return end(*std::move(refused));
  if (tier_ == protocol::Tier::read) return send();
  write_intent();
}

std::optional<CallResult> Passage::ask_gates(const policy::Policy& policy) {
  if (funnel_.draining()) return refusal("draining", "the gateway is stopping and takes no new calls");
  if (call_.agent.empty() || call_.tool.empty()) {
    return refusal("tool_name", "a tool is named AGENT__TOOL; GET /api/tools lists them");
  }
  if (call_.timeout > funnel_.options_.max_timeout) {
    return refusal("timeout_too_long",
                   fmt::format("a call may take {} s at most",
                               std::chrono::duration_cast<std::chrono::seconds>(funnel_.options_.max_timeout).count()));
  }
  policy::Question question{call_.principal, call_.agent, call_.tool, call_.arguments, tier_};
  for (auto gate : {&policy::Policy::check_role, &policy::Policy::check_scope, &policy::Policy::check_approval,
                    &policy::Policy::check_rate}) {
    policy::Decision decision = (policy.*gate)(question);
    if (decision.allowed) continue;
    CallResult refused = refusal(std::move(decision.reason), decision.message);
    refused.retry_after = decision.retry_after;
    return refused;
  }
  return std::nullopt;
}

void Passage::write_intent() {
  if (funnel_.log_ == nullptr) {
    return end(
        refusal("audit_unavailable", fmt::format("{} is of tier {} and cannot be recorded: audit_log_path is not set",
                                                 call_.tool, protocol::to_string(tier_))));
  }
  auto self = shared_from_this();
  auto queued = funnel_.log_->append(record(audit::RecordKind::intent), [self](Result<std::uint64_t> written) {
    if (!written) {
      return self->end(refusal("audit_unavailable", "the call cannot be recorded: " + written.error().message));
    }
    self->intent_written_ = true;
    self->send();
  });
  if (!queued) end(refusal("audit_unavailable", "the call cannot be recorded: " + queued.error().message));
}

void Passage::send() {
  auto self = shared_from_this();
  fleet::AgentRequest request;
  request.tool = call_.tool;
  request.arguments = intent_written_ ? std::move(call_.arguments) : call_.arguments;
  request.timeout = call_.timeout;
  if (call_.on_progress) {
    request.on_progress = [self](std::string_view params) {
      self->worker_.dispatch([self, copy = std::string(params)] { self->call_.on_progress(copy); });
    };
  }
  request.done = [self](fleet::AgentReply reply) { self->on_reply(std::move(reply)); };
  bool withdrawn_before = false;
  {
    std::lock_guard lock(mutex_);
    withdrawn_before = !cancel_reason_.empty();
  }
  if (withdrawn_before) {
    CallResult withdrawn = refusal("cancelled", "the call was withdrawn before it was sent");
    withdrawn.outcome = Outcome::cancelled;
    return end(std::move(withdrawn));
  }
  std::uint64_t ticket = FunnelAccess::send(funnel_.fleet_, call_.agent, std::move(request));
  std::string cancel_reason;
  {
    std::lock_guard lock(mutex_);
    ticket_ = ticket;
    cancel_reason = cancel_reason_;
  }
  // It was withdrawn while it was being handed over.
  if (!cancel_reason.empty()) FunnelAccess::cancel(funnel_.fleet_, call_.agent, ticket, std::move(cancel_reason));
}

void Passage::cancel(std::string_view reason) {
  std::uint64_t ticket = 0;
  {
    std::lock_guard lock(mutex_);
    if (ended_ || !cancel_reason_.empty()) return;
    cancel_reason_ = reason.empty() ? "withdrawn" : reason;
    ticket = ticket_;
  }
  if (ticket != 0) FunnelAccess::cancel(funnel_.fleet_, call_.agent, ticket, std::string(reason));
}

void Passage::on_reply(fleet::AgentReply reply) {
  end(from_reply(std::move(reply)));
}

void Passage::end(CallResult result) {
  {
    std::lock_guard lock(mutex_);
    ended_ = true;
  }
  auto elapsed = funnel_.clock_.steady_now() - started_;
  result.duration_us =
      static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::microseconds>(elapsed).count());
  if (funnel_.log_ == nullptr) return deliver(std::move(result));

  audit::Record outcome = record(audit::RecordKind::outcome);
  outcome.outcome = result.outcome;
  outcome.reason = result.reason;
  outcome.duration_us = result.duration_us;
  if (result.is_error) outcome.detail = message_of(result.body);
  // The caller hears of the outcome when it is on disk: nothing acknowledged can be lost.
  auto self = shared_from_this();
  auto shared_result = std::make_shared<CallResult>(std::move(result));
  auto queued = funnel_.log_->append(std::move(outcome), [self, shared_result](Result<std::uint64_t> written) {
    if (!written)
      log::error("the outcome of a call is not recorded",
                 {{"call", self->call_id_}, {"reason", written.error().message}});
    self->deliver(std::move(*shared_result));
  });
  if (!queued) {
    log::error("the outcome of a call is not recorded", {{"call", call_id_}, {"reason", queued.error().message}});
    deliver(std::move(*shared_result));
  }
}

void Passage::deliver(CallResult result) {
  auto self = shared_from_this();
  worker_.post([self, result = std::move(result)]() mutable {
    self->done_(std::move(result));
    self->done_ = nullptr;
    self->funnel_.on_ended(self);
  });
}

audit::Record Passage::record(audit::RecordKind kind) const {
  audit::Record record;
  record.kind = kind;
  record.call_id = call_id_;
  record.request_id = call_.request_id;
  record.principal = call_.principal.name;
  record.role = policy::to_string(call_.principal.role);
  record.surface = to_string(call_.surface);
  record.action = "tool_call";
  record.agent = call_.agent;
  record.tool = call_.tool;
  // The intent carries the arguments; an outcome repeats them only where there was no intent.
  if (!intent_written_) record.arguments = call_.arguments;
  record.tier = protocol::to_string(tier_);
  record.on_behalf_of = call_.on_behalf_of;
  record.after_untrusted_text = call_.after_untrusted_text;
  return record;
}

}  // namespace

std::unique_ptr<Funnel> Funnel::create(fleet::Fleet& fleet, std::shared_ptr<const policy::Policy> policy,
                                       audit::Log* log, const Clock& clock, Options options) {
  return std::make_unique<FunnelImpl>(fleet, std::move(policy), log, clock, options);
}

}  // namespace hive::calls
