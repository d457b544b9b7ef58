#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <string>

namespace hive::mcp_surface {

/// How many long-lived streams each identity has open. Thread-safe.
class StreamQuota : public std::enable_shared_from_this<StreamQuota> {
 public:
  explicit StreamQuota(std::size_t max_per_identity) : max_(max_per_identity) {}

  /// A place for one stream, given back when the last holder drops it; null if the identity has none left.
  std::shared_ptr<void> take(const std::string& identity) {
    {
      std::lock_guard lock(mutex_);
      std::size_t& count = counts_[identity];
      if (count >= max_) return nullptr;
      ++count;
    }
    return {this, [self = shared_from_this(), identity](void*) { self->give_back(identity); }};
  }

  [[nodiscard]] std::size_t max() const { return max_; }

 private:
  void give_back(const std::string& identity) {
    std::lock_guard lock(mutex_);
    auto found = counts_.find(identity);
    if (found != counts_.end() && --found->second == 0) counts_.erase(found);
  }

  const std::size_t max_;
  std::mutex mutex_;
  std::map<std::string, std::size_t> counts_;  // guarded by mutex_
};

}  // namespace hive::mcp_surface
