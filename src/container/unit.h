#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

/// What systemd says and does about the unit of a container.
namespace hive::container {

struct UnitState {
  std::string active;  ///< "active", "activating", "failed", "inactive", ...
  std::string since;   ///< when it became that, as systemd writes it; empty if never
  std::string result;  ///< "success", "exit-code", "timeout", ...
  std::string memory;  ///< bytes in decimal, or empty when it is not counted
  std::string tasks;   ///< count, or empty

  [[nodiscard]] bool is_running() const {
    return active == "active" || active == "activating" || active == "reloading";
  }
};

std::string unit_of(std::string_view name);

Result<UnitState> unit_state(std::string_view name);

/// Starts the unit and returns when the system inside has reached multi-user.target. Failure quotes what the unit's
/// journal says about the refused start.
Result<void> start_unit(std::string_view name);

/// Stops the unit and forgets an earlier failure; one that is not loaded is stopped.
Result<void> stop_unit(std::string_view name);

}  // namespace hive::container
