#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>

#include "base/clock.h"

namespace hive::policy {

/// A sliding window of 60 s per key: at most `limit` accepted calls in any window; refused ones do not count.
/// Thread-safe. The number of keys is bounded; when it is reached, keys without a call in the window are forgotten, and
/// if that makes no room, new keys are refused.
class RateLimiter {
 public:
  static constexpr std::chrono::seconds window{60};

  RateLimiter(std::size_t limit, std::size_t max_keys, const Clock& clock)
      : limit_(limit), max_keys_(max_keys), clock_(clock) {}

  /// nullopt: accepted and counted. Otherwise how long until the next call of this key would be accepted.
  std::optional<std::chrono::milliseconds> try_acquire(const std::string& key);

 private:
  void forget_idle_keys(SteadyTime now);

  const std::size_t limit_;
  const std::size_t max_keys_;
  const Clock& clock_;
  std::mutex mutex_;
  std::unordered_map<std::string, std::deque<SteadyTime>> accepted_;  // guarded by mutex_
};

}  // namespace hive::policy
