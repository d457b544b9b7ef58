#pragma once

#include <cstdint>
#include <string>

namespace hive::forwarder {

/// An entry of the journal, as far as it is forwarded. Texts may hold any bytes.
struct JournalEntry {
  std::string cursor;
  std::string boot_id;
  std::uint64_t monotonic_us = 0;
  std::uint64_t realtime_us = 0;
  int priority = 6;  ///< of syslog: 0 is the worst
  std::string message;
  std::string unit;
  std::string identifier;
  std::string pid;

  /// About what it takes in a request.
  [[nodiscard]] size_t size_bytes() const {
    return 400 + message.size() + unit.size() + identifier.size() + cursor.size();
  }
};

}  // namespace hive::forwarder
