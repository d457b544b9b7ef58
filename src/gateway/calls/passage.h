#pragma once

#include <expected>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "gateway/calls/approvals.h"
#include "gateway/calls/caller_limit.h"
#include "gateway/calls/funnel.h"
#include "gateway/upstreams/upstreams.h"

namespace hive::calls {

/// What the calls of one funnel share. Thread-safe.
class PassageHost {
 public:
  virtual ~PassageHost() = default;
  [[nodiscard]] virtual fleet::Fleet& fleet() = 0;
  [[nodiscard]] virtual audit::Log* log() = 0;
  [[nodiscard]] virtual const Clock& clock() = 0;
  [[nodiscard]] virtual Approvals* approvals() = 0;
  [[nodiscard]] virtual upstreams::Upstreams* upstreams() = 0;
  [[nodiscard]] virtual const Funnel::Options& options() = 0;
  [[nodiscard]] virtual std::shared_ptr<const policy::Policy> current_policy() = 0;
  /// See Funnel.
  [[nodiscard]] virtual std::expected<policy::Principal, CallResult> refresh(
      const policy::Principal& earlier) const = 0;
  [[nodiscard]] virtual bool is_draining() = 0;
  [[nodiscard]] virtual CallerLimit& callers() = 0;
  /// Of the calls that wait for agents.
  [[nodiscard]] virtual CallerLimit& waiting_callers() = 0;
  [[nodiscard]] virtual std::string next_call_id() = 0;
  /// The entry of what a gate refused before it was counted by a rate limit, if it is to be written; otherwise it was
  /// only counted, because its principal asks again and again, and is summed up later.
  [[nodiscard]] virtual std::optional<audit::Record> admit_refusal(audit::Record refusal) = 0;
  /// What was started is waited for when the gateway stops.
  virtual void on_started(std::shared_ptr<RunningCall> passage) = 0;
  virtual void on_ended(const std::shared_ptr<RunningCall>& passage) = 0;
};

/// The tier of a call under a policy.
protocol::Tier tier_of(const Call& call, const policy::Policy& policy);

/// One call on its way through the gates. Steps follow one another on different threads, never two at once; cancel()
/// may come from any thread at any time.
class Passage final : public RunningCall, public std::enable_shared_from_this<Passage> {
 public:
  Passage(PassageHost& host, net::Worker& worker, Call call, std::move_only_function<void(CallResult)> done)
      : host_(host), worker_(worker), call_(std::move(call)), done_(std::move(done)) {}

  void start();
  void cancel(std::string_view reason) override;

 private:
  [[nodiscard]] std::optional<CallResult> check_form() const;
  [[nodiscard]] std::string key_of_target() const;
  [[nodiscard]] policy::ApprovalSubject subject(const policy::Policy& policy) const;
  std::optional<CallResult> take_place();
  std::optional<CallResult> take_approval(const policy::Policy& policy);
  /// Whether the first gates let the call through now; otherwise it has ended.
  bool pass_gates(const policy::Policy& policy, bool counts);
  void go_on();
  [[nodiscard]] bool waits_for_agent() const;
  void wait_for_agent();
  void on_wait_ended(fleet::WaitEnd end);
  void ask_others(const policy::Policy& policy);
  void write_intent();
  void send();
  void send_to_agent();
  void send_to_upstream();
  [[nodiscard]] bool is_withdrawn();
  void keep_ticket(std::uint64_t ticket);
  void withdraw(std::uint64_t ticket, std::string reason);
  /// What the gates look at and people approve.
  [[nodiscard]] std::string_view body() const { return call_.method.empty() ? call_.arguments : call_.params; }
  void end(CallResult result);
  void deliver(CallResult result);
  [[nodiscard]] audit::Record record(audit::RecordKind kind) const;

  PassageHost& host_;
  net::Worker& worker_;
  Call call_;
  std::move_only_function<void(CallResult)> done_;
  std::string call_id_;
  std::string agent_key_;  // of an approved call: the only key that may answer it
  protocol::Tier tier_ = protocol::Tier::write;
  SteadyTime started_;
  bool intent_written_ = false;
  bool has_place_ = false;   // among the calls of its caller
  bool is_bounded_ = false;  // by the rate limit, or by an approval
  bool asks_others_ = false;
  std::shared_ptr<const policy::Policy> policy_;  // the one that the gates asked last

  std::mutex mutex_;
  bool ended_ = false;         // guarded by mutex_
  std::uint64_t ticket_ = 0;   // guarded by mutex_
  std::uint64_t wait_ = 0;     // guarded by mutex_; for the agent
  std::string cancel_reason_;  // guarded by mutex_; not empty: withdrawn
};

}  // namespace hive::calls
