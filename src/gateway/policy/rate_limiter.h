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
/// Thread-safe. Keys belong to a group, such as the principal who chooses them, and their number is bounded in each
/// group: who invents keys locks out nobody else. When a group is full, its keys without a call in the window are
/// forgotten, and if that makes no room, its new keys are refused. The number of groups is the caller's to bound.
class RateLimiter {
 public:
  static constexpr std::chrono::seconds window{60};

  RateLimiter(std::size_t limit, std::size_t max_keys_per_group, const Clock& clock)
      : limit_(limit), max_keys_per_group_(max_keys_per_group), clock_(clock) {}

  /// nullopt: accepted and counted. Otherwise how long until the next call of this key would be accepted.
  std::optional<std::chrono::milliseconds> try_acquire(const std::string& group, const std::string& key);

 private:
  using Times = std::unordered_map<std::string, std::deque<SteadyTime>>;

  const std::size_t limit_;
  const std::size_t max_keys_per_group_;
  const Clock& clock_;
  std::mutex mutex_;
  std::unordered_map<std::string, Times> accepted_;  // by group and key; guarded by mutex_
};

}  // namespace hive::policy
