#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <expected>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "gateway/audit/log.h"
#include "gateway/calls/call.h"
#include "gateway/calls/funnel.h"
#include "gateway/fleet/fleet.h"
#include "gateway/policy/policy.h"
#include "net/runtime/runtime.h"

namespace hive::calls {

/// The agents that one request is for: all that any of the members means, each once.
struct FanOutTargets {
  std::vector<std::string> agents;  ///< ids, or globs with "*"; an id may be of an agent that is offline or unknown
  std::vector<std::string> tags;    ///< tags of agent_tags, or globs with "*"
  bool all = false;                 ///< every agent that the caller reaches; stands alone
  bool with_offline = false;        ///< globs, tags and `all` mean agents that are offline as well
};

/// One call for many agents.
struct FanOutRequest {
  policy::Principal principal;
  Surface surface = Surface::rest;
  std::string request_id;  ///< stands in the audit entries of all its calls, so that they can be found together
  FanOutTargets targets;
  std::string tool;
  std::string arguments = "{}";  ///< raw JSON, already validated by the surface's parser
  std::string on_behalf_of = {};
  bool after_untrusted_text = false;
  std::size_t concurrency = 32;                 ///< calls at once; 1 to FanOuts::max_concurrency
  std::chrono::milliseconds timeout{0};         ///< of each call; 0: the gateway's default
  std::chrono::milliseconds deadline{0};        ///< of the whole; 0: FanOuts::default_deadline
  std::chrono::milliseconds wait_for_agent{0};  ///< see Call; more than 0 implies with_offline
  std::size_t stop_after_errors = 0;            ///< 0: never
};

/// How the call of one agent ended, or that it waits for an approval, or why it was not started.
struct FanOutResult {
  std::size_t place = 0;  ///< in RunningFanOut::agents()
  std::string_view agent;
  CallResult call;
};

/// How many calls ended how.
struct FanOutCounts {
  static constexpr std::size_t outcomes = static_cast<std::size_t>(protocol::Outcome::unknown) + 1;
  std::array<std::size_t, outcomes> by_outcome{};
  std::size_t approval_required = 0;  ///< they wait for other people, and nothing ran

  [[nodiscard]] std::size_t of(protocol::Outcome outcome) const {
    return by_outcome[static_cast<std::size_t>(outcome)];
  }
};

struct FanOutEnd {
  FanOutCounts counts;
  std::size_t not_started = 0;  ///< of those that were denied, cancelled or expired
  std::string stopped_by;  ///< "" if every call was made; "fan_out_stopped", "fan_out_deadline", "fan_out_cancelled",
                           ///< "draining", "credential_expired", "credential_revoked"
  std::uint64_t duration_us = 0;
};

/// Where results go, on the worker of the fan-out. Nothing is kept of what was handed out.
class FanOutSink {
 public:
  virtual ~FanOutSink() = default;
  /// Once an agent, in the order in which they end.
  virtual void result(FanOutResult result) = 0;
  /// Once, after the last result.
  virtual void end(const FanOutEnd& end) = 0;
  /// While there is none, no call is started; RunningFanOut::resume() says that there is again.
  [[nodiscard]] virtual bool has_room() const { return true; }
};

/// A fan-out that is on its way. Dropping it does not cancel it.
class RunningFanOut {
 public:
  virtual ~RunningFanOut() = default;
  /// Whom it is for: those that were named in the order of the request, then what globs, tags and `all` mean, by id.
  [[nodiscard]] virtual const std::vector<std::string>& agents() const = 0;
  /// Agents that are meant and were left out because they are offline.
  [[nodiscard]] virtual std::size_t left_out() const = 0;
  /// Starts no more calls and withdraws those that run. Thread-safe.
  virtual void cancel(std::string_view reason) = 0;
  /// Goes on after FanOutSink::has_room() was false. On the worker.
  virtual void resume() = 0;
};

/// What would become of one agent's call, by the policy alone; no agent is asked, and nothing is counted.
struct FanOutForecast {
  std::string agent;
  std::optional<bool> online = {};                   ///< nothing of agents out of the caller's reach
  policy::Verdict verdict = policy::Verdict::allow;  ///< allow, ask or deny
  std::string reason;                                ///< of the gate that decides; empty when it is allowed
  std::string message;
};

struct FanOutPreview {
  protocol::Tier tier = protocol::Tier::write;
  std::vector<FanOutForecast> agents;  ///< in the order of RunningFanOut::agents()
  std::size_t left_out = 0;
};

/// Calls for many agents, each by what the caller's credential gives when it begins: nothing but calls through the
/// funnel, a bounded number of them at once (DESIGN section 2). Thread-safe. The funnel, the fleet and the log must
/// outlive it, and it must outlive the fan-outs: drain the funnel before destroying it.
class FanOuts {
 public:
  static constexpr std::size_t max_agents = 10'000;
  static constexpr std::size_t max_concurrency = 256;
  /// Of one request; each needs people who look at it.
  static constexpr std::size_t max_approvals = 50;
  static constexpr std::size_t max_arguments_bytes = std::size_t{64} << 10;
  static constexpr std::chrono::milliseconds default_deadline = std::chrono::minutes(10);
  static constexpr std::chrono::milliseconds max_deadline = std::chrono::hours(24);

  struct Options {
    std::size_t max_running = 64;
    std::size_t max_running_per_identity = 4;
  };

  /// `log` may be null: no audit log.
  static std::unique_ptr<FanOuts> create(Funnel& funnel, const fleet::Fleet& fleet, audit::Log* log, const Clock& clock,
                                         Options options);
  static std::unique_ptr<FanOuts> create(Funnel& funnel, const fleet::Fleet& fleet, audit::Log* log,
                                         const Clock& clock) {
    return create(funnel, fleet, log, clock, Options());
  }
  virtual ~FanOuts() = default;

  /// Resolves whom a request is for, once, and begins with the calls; the sink hears of them on `worker`, later than
  /// this call returns. An agent that is named and not in the caller's scope ends as denied; what a glob, a tag or
  /// `all` means is cut to the scope without a word. Fails, as a denied call and with nothing run, for a role that may
  /// not call, for no agent at all ("no_target"), and for what is out of bounds.
  virtual std::expected<std::shared_ptr<RunningFanOut>, CallResult> start(net::Worker& worker, FanOutRequest request,
                                                                          std::shared_ptr<FanOutSink> sink) = 0;

  /// Whom a request is for and what the policy says to each call. Takes its time with thousands of agents: for the
  /// blocking pool. Fails as start() would.
  [[nodiscard]] virtual std::expected<FanOutPreview, CallResult> preview(const FanOutRequest& request) = 0;
};

}  // namespace hive::calls
