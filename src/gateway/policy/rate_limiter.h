#pragma once

#include <chrono>
#include <cstddef>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/clock.h"

namespace hive::policy {

/// A sliding window of 60 s per key: at most `limit` accepted calls in any window; refused ones do not count.
/// Thread-safe. Keys belong to a group, such as the principal who chooses them, and their number is bounded in each
/// group, as is the number of groups: who invents keys locks out nobody else. When a group is full, its keys without a
/// call in the window are forgotten, and if that makes no room, its new keys are refused; so with the groups. Idle keys
/// and groups are also forgotten whenever their number has doubled, so that memory follows the calls of the last
/// minute.
class RateLimiter {
 public:
  static constexpr std::chrono::seconds window{60};
  static constexpr std::size_t default_max_groups = 16'384;

  RateLimiter(std::size_t limit, std::size_t max_keys_per_group, const Clock& clock,
              std::size_t max_groups = default_max_groups)
      : limit_(limit), max_keys_per_group_(max_keys_per_group), max_groups_(max_groups), clock_(clock) {}

  /// nullopt: accepted and counted. Otherwise how long until the next call of this key would be accepted.
  std::optional<std::chrono::milliseconds> try_acquire(const std::string& group, const std::string& key);

  /// What try_acquire would say now to a key that is known; counts nothing.
  [[nodiscard]] std::optional<std::chrono::milliseconds> would_wait(const std::string& group,
                                                                    const std::string& key) const;

 private:
  using Times = std::vector<SteadyTime>;  // of accepted calls, oldest first; never empty

  // When to look for idle entries again: looking is only worth its time when there are many more than the last time, or
  // room is needed.
  struct Sweeps {
    std::size_t at_size = 64;
    SteadyTime last = {};
    [[nodiscard]] bool due(std::size_t size, std::size_t max, SteadyTime now) const;
    void done(std::size_t size, SteadyTime now);
  };
  struct Group {
    std::unordered_map<std::string, Times> keys;
    Sweeps sweeps;
  };

  [[nodiscard]] std::optional<std::chrono::milliseconds> wait_of(const Times& times, SteadyTime now) const;
  Group* find_or_add(const std::string& name, SteadyTime now);
  static void forget_idle_keys(Group& group, SteadyTime now);

  const std::size_t limit_;
  const std::size_t max_keys_per_group_;
  const std::size_t max_groups_;
  const Clock& clock_;
  mutable std::mutex mutex_;
  std::unordered_map<std::string, Group> groups_;  // guarded by mutex_
  Sweeps sweeps_;                                  // of the groups; guarded by mutex_
};

}  // namespace hive::policy
