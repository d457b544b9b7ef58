#include "gateway/calls/passage.h"

#include "base/log.h"
#include "gateway/calls/funnel_access.h"
#include "gateway/calls/results.h"
#include "protocol/json.h"

namespace hive::calls {

using protocol::Outcome;

/// The key to what only the funnel may do with approvals.
class ApprovalAccess {
 public:
  static void ask(Approvals& approvals, Approval request,
                  std::move_only_function<void(Result<Approvals::Snapshot>)> done) {
    approvals.ask(std::move(request), std::move(done));
  }
  static std::expected<std::string, std::string> redeem(Approvals& approvals, std::string_view id,
                                                        const policy::ApprovalSubject& subject) {
    return approvals.redeem(id, subject);
  }
};

namespace {

constexpr std::string_view tools_call = "tools/call";

CallResult refused_by(policy::Decision decision) {
  CallResult result = refusal(std::move(decision.reason), decision.message);
  result.retry_after = decision.retry_after;
  return result;
}

std::string_view explanation(std::string_view reason) {
  if (reason == "approval_used") return "this approval was used already; ask for another one";
  if (reason == "policy_changed") return "the rules have changed since this was asked; ask again";
  if (reason == "agent_key_changed") return "the agent has another key than when this was asked; ask again";
  if (reason == "approval_changed") return "this is not the call that was approved";
  return "there is no approval with this id for this call";
}

CallResult waiting(const Approval& approval) {
  CallResult result =
      refusal("approval_required",
              fmt::format("waits for the approval of {} under the id {} until {}",
                          approval.needed == 1 ? "another person" : fmt::format("{} other people", approval.needed),
                          approval.id, format_rfc3339(approval.expires_at)));
  result.approval_id = approval.id;
  result.approval_expires_at = approval.expires_at;
  result.approvals_needed = approval.needed;
  return result;
}

}  // namespace

// Reading what an upstream offers is of tier read; what its tools do nobody has classified.
protocol::Tier tier_of(const Call& call, const policy::Policy& policy) {
  if (call.target == TargetKind::agent) return policy.tier_of(call.tool, call.arguments);
  if (!call.method.empty() && call.method != tools_call) return protocol::Tier::read;
  return policy.tier_of_upstream(call.tool);
}

void Passage::start() {
  started_ = host_.clock().steady_now();
  call_id_ = host_.next_call_id();
  policy_ = host_.current_policy();
  tier_ = tier_of(call_, *policy_);
  if (auto refused = check_form()) return end(*std::move(refused));
  if (!call_.approval_id.empty()) {
    is_bounded_ = true;
    // Taken before the other gates speak: whatever they say is the end of the call that was approved.
    if (auto refused = take_approval(*policy_)) return end(*std::move(refused));
  }
  if (!pass_gates(*policy_, true)) return;
  if (waits_for_agent()) return wait_for_agent();
  go_on();
}

bool Passage::pass_gates(const policy::Policy& policy, bool counts) {
  policy::Question question{call_.principal, call_.agent, call_.tool, body(), tier_};
  for (auto gate : {&policy::Policy::check_role, &policy::Policy::check_scope}) {
    policy::Decision decision = (policy.*gate)(question);
    if (decision.allowed()) continue;
    end(refused_by(std::move(decision)));
    return false;
  }
  if (!call_.approval_id.empty()) return true;
  policy::Decision approval = policy.check_approval(question);
  if (approval.verdict != policy::Verdict::allow && approval.verdict != policy::Verdict::ask) {
    end(refused_by(std::move(approval)));
    return false;
  }
  asks_others_ = approval.verdict == policy::Verdict::ask;
  if (!counts) return true;
  if (auto refused = take_place()) {
    end(*std::move(refused));
    return false;
  }
  // Asking counts as the call, which is then not counted again: otherwise an approved call could be refused for what
  // its requester did meanwhile.
  policy::Decision rate = policy.check_rate(question);
  if (!rate.allowed()) {
    end(refused_by(std::move(rate)));
    return false;
  }
  is_bounded_ = true;
  return true;
}

void Passage::go_on() {
  if (asks_others_) return ask_others(*policy_);
  if (tier_ == protocol::Tier::read) return send();
  write_intent();
}

std::optional<CallResult> Passage::check_form() const {
  if (host_.is_draining()) return refusal("draining", "the gateway is stopping and takes no new calls");
  if (call_.agent.empty() || call_.tool.empty()) {
    return refusal("tool_name", "a tool is named AGENT__TOOL; GET /api/tools lists them");
  }
  if (call_.timeout > host_.options().max_timeout) {
    return refusal("timeout_too_long",
                   fmt::format("a call may take {} s at most",
                               std::chrono::duration_cast<std::chrono::seconds>(host_.options().max_timeout).count()));
  }
  if (call_.wait_for_agent > host_.options().max_wait_for_agent) {
    return refusal(
        "wait_too_long",
        fmt::format("a call may wait {} s at most for its agent",
                    std::chrono::duration_cast<std::chrono::seconds>(host_.options().max_wait_for_agent).count()));
  }
  return std::nullopt;
}

// An approved call takes none: it is bounded by the approvals, and must not be lost to what its requester does
// meanwhile.
std::optional<CallResult> Passage::take_place() {
  has_place_ = host_.callers().enter(call_.principal.name);
  if (has_place_) return std::nullopt;
  return refusal(
      "too_many_calls",
      fmt::format("{} calls of {} are in flight, as many as max_calls_per_caller admits; wait for one to end",
                  host_.callers().max_per_caller(), call_.principal.name));
}

// What must still be the same when an approved call is sent: an agent's key. An upstream has none; its name stands for
// it.
std::string Passage::key_of_target() const {
  if (call_.target == TargetKind::upstream) {
    upstreams::Upstreams* upstreams = host_.upstreams();
    return upstreams != nullptr && upstreams->has(call_.agent) ? "upstream:" + call_.agent : std::string();
  }
  auto agent = host_.fleet().find(call_.agent);
  return agent && agent->online ? agent->key_fingerprint : std::string();
}

policy::ApprovalSubject Passage::subject(const policy::Policy& policy) const {
  policy::ApprovalSubject subject;
  subject.principal = call_.principal.name;
  subject.identity = call_.principal.identity();
  subject.on_behalf_of = call_.on_behalf_of;
  subject.agent = call_.agent;
  subject.agent_key = key_of_target();
  subject.tool = call_.tool;
  subject.arguments = body();
  subject.tier = tier_;
  subject.policy_version = policy.version();
  return subject;
}

std::optional<CallResult> Passage::take_approval(const policy::Policy& policy) {
  Approvals* approvals = host_.approvals();
  policy::ApprovalSubject asked = subject(policy);
  auto taken = approvals == nullptr ? std::unexpected(std::string("approval_unknown"))
                                    : ApprovalAccess::redeem(*approvals, call_.approval_id, asked);
  if (!taken) return refusal(taken.error(), explanation(taken.error()));
  call_id_ = *std::move(taken);
  agent_key_ = std::move(asked.agent_key);
  return std::nullopt;
}

void Passage::ask_others(const policy::Policy& policy) {
  Approvals* approvals = host_.approvals();
  if (approvals == nullptr || host_.log() == nullptr) {
    return end(
        refusal("audit_unavailable",
                fmt::format("{} is of tier {} and needs an approval, which cannot be recorded: audit_log_path is "
                            "not set",
                            call_.tool, protocol::to_string(tier_))));
  }
  Approval request;
  request.subject = subject(policy);
  if (request.subject.agent_key.empty()) {
    return end(refusal(call_.target == TargetKind::agent ? "agent_offline" : "upstream_offline",
                       fmt::format("{} is offline; an approval holds for what is there", call_.agent)));
  }
  request.target = call_.target;
  request.method = call_.method;
  request.requester = call_.principal;
  request.request_id = call_.request_id;
  request.call_id = call_id_;
  request.surface = call_.surface;
  request.after_untrusted_text = call_.after_untrusted_text;
  request.timeout = call_.timeout;
  request.needed = policy.approvals_needed(tier_);
  ApprovalAccess::ask(*approvals, std::move(request), [self = shared_from_this()](Result<Approvals::Snapshot> asked) {
    if (asked) return self->deliver(waiting(**asked));
    bool full = asked.error().code == ErrorCode::resource_exhausted;
    self->end(refusal(full ? "approvals_full" : "audit_unavailable", asked.error().message));
  });
}

void Passage::write_intent() {
  if (host_.log() == nullptr) {
    return end(
        refusal("audit_unavailable", fmt::format("{} is of tier {} and cannot be recorded: audit_log_path is not set",
                                                 call_.tool, protocol::to_string(tier_))));
  }
  auto self = shared_from_this();
  auto queued = host_.log()->append(record(audit::RecordKind::intent), [self](Result<std::uint64_t> written) {
    if (!written) {
      return self->end(refusal("audit_unavailable", "the call cannot be recorded: " + written.error().message));
    }
    self->intent_written_ = true;
    self->send();
  });
  if (!queued) end(refusal("audit_unavailable", "the call cannot be recorded: " + queued.error().message));
}

void Passage::send() {
  if (is_withdrawn()) {
    return end(refusal("cancelled", "the call was withdrawn before it was sent", Outcome::cancelled));
  }
  if (call_.target == TargetKind::upstream) return send_to_upstream();
  send_to_agent();
}

void Passage::send_to_agent() {
  auto self = shared_from_this();
  fleet::AgentRequest request;
  request.tool = call_.tool;
  request.arguments = intent_written_ ? std::move(call_.arguments) : call_.arguments;
  request.required_key = agent_key_;
  request.timeout = call_.timeout;
  if (call_.on_progress) {
    request.on_progress = [self](std::string_view params) {
      self->worker_.dispatch([self, copy = std::string(params)] { self->call_.on_progress(copy); });
    };
  }
  request.done = [self](fleet::AgentReply reply) { self->end(from_reply(std::move(reply))); };
  keep_ticket(FunnelAccess::send(host_.fleet(), call_.agent, std::move(request)));
}

void Passage::send_to_upstream() {
  upstreams::Upstreams* upstreams = host_.upstreams();
  if (upstreams == nullptr || (!agent_key_.empty() && agent_key_ != key_of_target())) {
    return end(refusal("upstream_unknown", fmt::format("there is no server {} behind this gateway", call_.agent)));
  }
  upstreams::Request request;
  request.method = call_.method.empty() ? std::string(tools_call) : call_.method;
  request.params = call_.method.empty() ? fmt::format(R"({{"name":{},"arguments":{}}})",
                                                      json::encode_string(call_.tool), call_.arguments)
                                        : call_.params;
  request.caller = call_.caller;
  request.timeout = call_.timeout;
  request.done = [self = shared_from_this()](upstreams::Reply reply) { self->end(from_reply(std::move(reply))); };
  keep_ticket(FunnelAccess::send(*upstreams, call_.agent, std::move(request)));
}

bool Passage::is_withdrawn() {
  std::lock_guard lock(mutex_);
  return !cancel_reason_.empty();
}

void Passage::keep_ticket(std::uint64_t ticket) {
  std::string cancel_reason;
  {
    std::lock_guard lock(mutex_);
    ticket_ = ticket;
    cancel_reason = cancel_reason_;
  }
  // It was withdrawn while it was being handed over.
  if (!cancel_reason.empty()) withdraw(ticket, std::move(cancel_reason));
}

void Passage::withdraw(std::uint64_t ticket, std::string reason) {
  if (call_.target == TargetKind::agent) {
    return FunnelAccess::cancel(host_.fleet(), call_.agent, ticket, std::move(reason));
  }
  if (host_.upstreams() != nullptr) FunnelAccess::cancel(*host_.upstreams(), ticket, std::move(reason));
}

void Passage::cancel(std::string_view reason) {
  std::uint64_t ticket = 0;
  std::uint64_t wait = 0;
  {
    std::lock_guard lock(mutex_);
    if (ended_ || !cancel_reason_.empty()) return;
    cancel_reason_ = reason.empty() ? "withdrawn" : reason;
    ticket = ticket_;
    wait = wait_;
  }
  if (wait != 0) host_.fleet().stop_waiting(wait);
  if (ticket != 0) withdraw(ticket, std::string(reason));
}

void Passage::end(CallResult result) {
  {
    std::lock_guard lock(mutex_);
    ended_ = true;
  }
  auto elapsed = host_.clock().steady_now() - started_;
  result.duration_us =
      static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::microseconds>(elapsed).count());
  if (host_.log() == nullptr) return deliver(std::move(result));

  audit::Record outcome = record(audit::RecordKind::outcome);
  outcome.outcome = result.outcome;
  outcome.reason = result.reason;
  outcome.duration_us = result.duration_us;
  if (result.is_error) outcome.detail = message_of(result.body);
  if (!is_bounded_) {
    // Nothing was done, and whoever may do nothing must not fill the log either.
    std::optional<audit::Record> admitted = host_.admit_refusal(std::move(outcome));
    if (!admitted) return deliver(std::move(result));
    outcome = *std::move(admitted);
  }
  // The caller hears of the outcome when it is on disk: nothing acknowledged can be lost.
  auto self = shared_from_this();
  auto shared_result = std::make_shared<CallResult>(std::move(result));
  auto queued = host_.log()->append(std::move(outcome), [self, shared_result](Result<std::uint64_t> written) {
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
  // Before the caller hears of it: the next call may come at once.
  if (std::exchange(has_place_, false)) host_.callers().leave(call_.principal.name);
  auto self = shared_from_this();
  worker_.post([self, result = std::move(result)]() mutable {
    self->done_(std::move(result));
    self->done_ = nullptr;
    self->host_.on_ended(self);
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
  record.action = call_.method.empty() || call_.method == tools_call ? std::string("tool_call") : call_.method;
  record.agent = call_.agent;
  record.tool = call_.tool;
  // The intent carries the arguments; an outcome repeats them only where there was no intent.
  if (!intent_written_) record.arguments = body();
  record.tier = protocol::to_string(tier_);
  record.on_behalf_of = call_.on_behalf_of;
  record.after_untrusted_text = call_.after_untrusted_text;
  return record;
}

}  // namespace hive::calls
