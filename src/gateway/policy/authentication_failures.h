#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/clock.h"

namespace hive::policy {

/// Counts refused credentials by source, to slow down guessing and to keep the audit log readable under a flood.
/// Bounded in memory and in what it gives to the log. Thread-safe; costs a relaxed load while nothing fails.
class AuthenticationFailures {
 public:
  struct Options {
    std::size_t max_sources = 4096;           ///< further ones share one count
    std::uint32_t free_failures = 20;         ///< a source may fail so often in one period
    std::chrono::seconds period{60};          ///< for both counts
    std::uint32_t max_reports_a_period = 60;  ///< entries for the log
  };

  /// An entry for the audit log: so many failures from this source since the last entry about it.
  struct Report {
    std::string source;
    std::uint64_t count = 0;
    std::string reason;  ///< of the last one
    std::string detail;  ///< of the last one; may be empty
  };

  explicit AuthenticationFailures(const Clock& clock) : AuthenticationFailures(clock, Options()) {}
  AuthenticationFailures(const Clock& clock, Options options) : clock_(clock), options_(options) {}

  /// How long this source must wait before a credential of it is looked at again; nullopt if it need not.
  [[nodiscard]] std::optional<std::chrono::seconds> must_wait(const std::string& source);

  /// Counts a failure. Returns what is to be written to the log now: the first failure of a source at once, later ones
  /// summed up once a period.
  [[nodiscard]] std::vector<Report> record(const std::string& source, std::string_view reason,
                                           std::string_view detail = {});

  /// What was counted and is due for the log, without a new failure. With `all`: also what is not due yet, for the end.
  [[nodiscard]] std::vector<Report> take_due(bool all = false);

 private:
  struct Source {
    SteadyTime period_began;
    std::uint32_t failures = 0;  // in this period
    std::uint64_t unreported = 0;
    std::string reason;
    std::string detail;
  };

  void collect_due(SteadyTime now, bool all, std::vector<Report>& reports);
  void report(const std::string& name, Source& source, std::vector<Report>& reports);

  const Clock& clock_;
  const Options options_;
  std::atomic<bool> quiet_ = true;  // no source is remembered
  std::mutex mutex_;
  std::unordered_map<std::string, Source> sources_;  // guarded by mutex_
  SteadyTime last_collection_;                       // guarded by mutex_
  SteadyTime reports_period_began_;                  // guarded by mutex_
  std::uint32_t reports_ = 0;                        // guarded by mutex_; in this period
};

}  // namespace hive::policy
