#pragma once

#include <cstddef>
#include <mutex>
#include <string>
#include <unordered_map>

namespace hive::calls {

/// Counts the calls that each principal has in flight, so that none of them takes all places of the gateway. Holds no
/// more names than there are calls. Thread-safe.
class CallerLimit {
 public:
  explicit CallerLimit(std::size_t max_per_caller) : max_per_caller_(max_per_caller) {}

  [[nodiscard]] std::size_t max_per_caller() const { return max_per_caller_; }

  /// Takes a place; false, and nothing is counted, when the caller has all of its places in use.
  [[nodiscard]] bool enter(const std::string& caller) {
    std::lock_guard lock(mutex_);
    std::size_t& count = counts_[caller];
    if (count >= max_per_caller_) {
      if (count == 0) counts_.erase(caller);
      return false;
    }
    ++count;
    return true;
  }

  /// Once for each enter() that returned true.
  void leave(const std::string& caller) {
    std::lock_guard lock(mutex_);
    auto found = counts_.find(caller);
    if (found != counts_.end() && --found->second == 0) counts_.erase(found);
  }

  [[nodiscard]] std::size_t callers() const {
    std::lock_guard lock(mutex_);
    return counts_.size();
  }

 private:
  const std::size_t max_per_caller_;
  mutable std::mutex mutex_;
  std::unordered_map<std::string, std::size_t> counts_;  // guarded by mutex_; none is zero
};

}  // namespace hive::calls
