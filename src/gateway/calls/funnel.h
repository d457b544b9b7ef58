#pragma once

#include <expected>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "gateway/audit/log.h"
#include "gateway/calls/call.h"
#include "gateway/fleet/fleet.h"
#include "gateway/policy/policy.h"
#include "gateway/upstreams/upstreams.h"
#include "net/runtime/runtime.h"

namespace hive::calls {

/// A call that is on its way. Dropping it does not cancel the call.
class RunningCall {
 public:
  virtual ~RunningCall() = default;
  /// Withdraws the call: what runs is ended, and it ends as cancelled. Harmless when it has ended. Thread-safe.
  virtual void cancel(std::string_view reason) = 0;
};

class Approvals;

/// What each gate would say to a call, in their order; nothing was run.
struct Explanation {
  policy::Verdict verdict = policy::Verdict::unknown;  ///< of the whole
  std::string reason;                                  ///< of the gate that decides; empty when it is allowed
  protocol::Tier tier = protocol::Tier::write;
  std::string tier_rule;
  std::vector<policy::GateAnswer> gates;  ///< "role", "scope", "approval", "rate_limit", "allowlist", "audit"
};

/// The single way to a tool (DESIGN section 2). Thread-safe. The fleet, the policy and the log must outlive it, and it
/// must outlive the calls it was given: drain before destroying it.
class Funnel {
 public:
  struct Options {
    std::chrono::milliseconds max_timeout = std::chrono::hours(1);
    std::size_t max_calls_per_caller = 1024;  ///< calls of one principal in flight; further ones are refused
    /// Calls of one principal that wait for agents; few enough to leave room for others in the fleet's waiting room.
    std::size_t max_waiting_per_caller = 256;
    /// The longest that a call may wait for its agent.
    std::chrono::milliseconds max_wait_for_agent = std::chrono::minutes(10);
  };

  /// `log` may be null: then calls of tier write and admin are refused, because what cannot be recorded is not done.
  static std::unique_ptr<Funnel> create(fleet::Fleet& fleet, std::shared_ptr<const policy::Policy> policy,
                                        audit::Log* log, const Clock& clock, Options options);
  virtual ~Funnel() = default;

  /// Sends `call` through the gates. `done` runs exactly once, on `worker`, later than this call returns.
  virtual std::shared_ptr<RunningCall> run(net::Worker& worker, Call call,
                                           std::move_only_function<void(CallResult)> done) = 0;

  /// Asks the gates about `call` without running it. The agent's allowlist is asked by a dry run where the tool has one
  /// and the first two gates let the caller that far; this dry run is recorded. `done` runs once, on `worker`, later.
  virtual void explain(net::Worker& worker, Call call, std::move_only_function<void(Explanation)> done) = 0;

  /// Where calls go that wait for other people. Without one, they are refused. Before the first call.
  virtual void set_approvals(Approvals* approvals) = 0;

  /// What a credential that was accepted earlier gives now; nullopt: nothing. Before the first call.
  using Refresh = std::function<std::optional<policy::Principal>(const policy::Principal& earlier)>;
  virtual void set_refresh(Refresh refresh) = 0;
  /// Who an earlier caller is now, or the end of what it has asked for: its credential has expired
  /// ("credential_expired") or was taken away ("credential_revoked"). For calls that begin, or go on, long after the
  /// credential was shown. Without set_refresh(), the time alone decides.
  [[nodiscard]] virtual std::expected<policy::Principal, CallResult> refresh(
      const policy::Principal& earlier) const = 0;

  /// The servers behind the gateway. Without, calls to them are refused. Before the first call.
  virtual void set_upstreams(upstreams::Upstreams* upstreams) = 0;

  /// Puts another policy in force for calls that start from now on.
  virtual void set_policy(std::shared_ptr<const policy::Policy> policy) = 0;
  [[nodiscard]] virtual std::shared_ptr<const policy::Policy> policy() const = 0;

  /// Refuses new calls from now on; `drained` runs on some thread when the last one has ended.
  virtual void drain(net::Task drained) = 0;
  /// Withdraws every call that is on its way.
  virtual void cancel_all(std::string_view reason) = 0;
  [[nodiscard]] virtual std::size_t in_flight() const = 0;
};

}  // namespace hive::calls
