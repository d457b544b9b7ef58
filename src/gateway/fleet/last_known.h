#pragma once

#include <chrono>
#include <functional>
#include <memory>

#include "base/clock.h"
#include "base/result.h"
#include "gateway/fleet/roster.h"
#include "net/runtime/runtime.h"

namespace hive::store {
class Database;
}

namespace hive::fleet {

/// Keeps the roster on disk, so that a gateway that starts knows the agents that are not there yet. What it reads is
/// shown to people and decides nothing: who may connect stands in authorized_keys alone.
///
/// Changes are gathered and written once a second, in one transaction on the store's thread; no worker waits for a
/// disk, and what an agent sends costs no writing. An agent that was online when the gateway was killed is shown as
/// offline since the last sign of life of the gateway, which is noted every `alive_interval` while somebody is online.
class LastKnown {
 public:
  static constexpr std::chrono::milliseconds write_interval{1000};
  static constexpr std::chrono::seconds alive_interval{15};

  /// What everything stands on; all of it must outlive the object, and the runtime's workers.
  struct Dependencies {
    net::Runtime& runtime;
    store::Database& database;
    Roster& roster;
    const Clock& clock;
    /// How long an agent is known that has no key any more; asked each time, since it can change.
    std::function<std::chrono::seconds()> keyless_for;
  };

  /// Fills the roster with what was kept. Waits for the store; rows that no gateway can have written are left out.
  static Result<std::shared_ptr<LastKnown>> open(Dependencies dependencies);
  virtual ~LastKnown() = default;

  /// Begins to write. Before the runtime starts.
  virtual void start() = 0;
  /// Writes what there is to write and waits until it is on disk; writes no more afterwards. Not on a worker.
  virtual Result<void> close() = 0;
};

}  // namespace hive::fleet
