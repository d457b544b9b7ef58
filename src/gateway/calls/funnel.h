#pragma once

#include <functional>
#include <memory>

#include "base/clock.h"
#include "gateway/audit/log.h"
#include "gateway/calls/call.h"
#include "gateway/fleet/fleet.h"
#include "gateway/policy/policy.h"
#include "net/runtime/runtime.h"

namespace hive::calls {

/// A call that is on its way. Dropping it does not cancel the call.
class RunningCall {
 public:
  virtual ~RunningCall() = default;
  /// Withdraws the call: what runs is ended, and it ends as cancelled. Harmless when it has ended. Thread-safe.
  virtual void cancel(std::string_view reason) = 0;
};

/// The single way to a tool (DESIGN section 2). Thread-safe.
class Funnel {
 public:
  struct Options {
    std::chrono::milliseconds default_timeout = std::chrono::seconds(35);
    std::chrono::milliseconds max_timeout = std::chrono::hours(1);
  };

  /// `log` may be null: then tiers write and admin are refused, unless the configuration switched the log off on
  /// purpose.
  static std::unique_ptr<Funnel> create(fleet::Fleet& fleet, const policy::Policy& policy, audit::Log* log,
                                        const Clock& clock, Options options);
  virtual ~Funnel() = default;

  /// Sends `call` through the gates. `done` runs exactly once, on `worker`.
  virtual std::shared_ptr<RunningCall> run(net::Worker& worker, Call call,
                                           std::move_only_function<void(CallResult)> done) = 0;

  /// Refuses new calls from now on; `drained` runs when the last one has ended.
  virtual void drain(net::Task drained) = 0;
  [[nodiscard]] virtual std::size_t in_flight() const = 0;
};

}  // namespace hive::calls
