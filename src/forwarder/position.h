#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"

namespace hive::forwarder {

/// The last entry that the collector has acknowledged.
struct Position {
  std::string cursor;
  std::string boot_id;
  std::uint64_t monotonic_us = 0;

  bool operator==(const Position&) const = default;
};

/// Reads the position from its file; nullopt if there is none yet. A file that says something else is a failure: to
/// begin anew would send everything again.
Result<std::optional<Position>> load_position(const std::string& path);
/// Replaces the file in one step, durably.
Result<void> save_position(const std::string& path, const Position& position);

}  // namespace hive::forwarder
