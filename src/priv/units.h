#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

namespace hive::priv {

/// The units of containers, container@NAME.service. An interface, so that tests need no systemd. Thread-safe.
class Units {
 public:
  virtual ~Units() = default;
  /// ActiveState of the unit: "active", "activating", "deactivating", "inactive", "failed".
  virtual Result<std::string> active_state(std::string_view container) = 0;
  /// Starts the unit and waits for the job; the result is the job's: "done", "failed", "timeout", ...
  virtual Result<std::string> start(std::string_view container) = 0;
  virtual Result<std::string> stop(std::string_view container) = 0;
};

/// The units of this host, by D-Bus. A connection a call: requests are rare, and the bus may be restarted.
std::unique_ptr<Units> systemd_units(std::chrono::seconds job_limit = std::chrono::seconds(100));

/// For a tree of files that is no running host: no unit runs there, and none can be started. What runs all the same is
/// told by the lock of its root.
std::unique_ptr<Units> no_units();

/// Whether a unit in this state uses its root, or is about to.
[[nodiscard]] bool is_running(std::string_view active_state);

}  // namespace hive::priv
