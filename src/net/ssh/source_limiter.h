#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <unordered_map>

namespace hive::net::ssh {

/// Counts connections for each source, so that one source cannot take every place. One thread.
class SourceLimiter {
 public:
  explicit SourceLimiter(size_t max_per_source) : max_per_source_(max_per_source) {}

  /// False when the source has its share already; then nothing is counted.
  [[nodiscard]] bool enter(const std::string& source) {
    size_t& count = counts_[source];
    if (count >= max_per_source_) {
      if (count == 0) counts_.erase(source);
      return false;
    }
    ++count;
    return true;
  }

  /// For each enter() that returned true.
  void leave(const std::string& source) {
    const auto found = counts_.find(source);
    if (found != counts_.end() && --found->second == 0) counts_.erase(found);
  }

  [[nodiscard]] size_t sources() const { return counts_.size(); }

 private:
  size_t max_per_source_;
  std::unordered_map<std::string, size_t> counts_;
};

}  // namespace hive::net::ssh
