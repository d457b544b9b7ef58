#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "gateway/audit/record.h"

namespace hive::audit {

/// Keeps the audit log readable when a known caller asks again and again for what it may not do: the first refusals of
/// a principal in a period are written as they are, further ones counted and summed up in one entry. Bounded in memory.
/// Thread-safe; costs a relaxed load while nobody is refused.
class RefusalLog {
 public:
  struct Options {
    std::size_t max_principals = 1024;  ///< further ones share one count
    std::uint32_t written_in_a_period = 10;
    std::chrono::seconds period{60};
  };

  explicit RefusalLog(const Clock& clock) : RefusalLog(clock, Options()) {}
  RefusalLog(const Clock& clock, Options options) : clock_(clock), options_(options) {}

  /// The entry, if it is to be written now; nullopt if it was only counted.
  [[nodiscard]] std::optional<Record> admit(Record refusal);

  /// Entries about what was counted in periods that are over. With `all`: also in those that are not, for the end.
  [[nodiscard]] std::vector<Record> take_due(bool all = false);

 private:
  struct Refused {
    SteadyTime period_began;
    std::uint32_t written = 0;
    std::uint64_t counted = 0;
    Record last;  // of the counted ones, without its arguments: these are what may be large
  };

  const Clock& clock_;
  const Options options_;
  std::atomic<bool> quiet_ = true;  // nobody is remembered
  std::mutex mutex_;
  std::unordered_map<std::string, Refused> refused_;  // by principal; guarded by mutex_
  SteadyTime last_collection_;                        // guarded by mutex_
};

}  // namespace hive::audit
