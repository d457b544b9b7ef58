#include "gateway/policy/rate_limiter.h"

namespace hive::policy {

std::optional<std::chrono::milliseconds> RateLimiter::try_acquire(const std::string& group, const std::string& key) {
  SteadyTime now = clock_.steady_now();
  std::lock_guard lock(mutex_);
  Times& keys = accepted_[group];
  auto found = keys.find(key);
  if (found == keys.end()) {
    if (keys.size() >= max_keys_per_group_) {
      std::erase_if(keys,
                    [now](const auto& entry) { return entry.second.empty() || now - entry.second.back() >= window; });
    }
    if (keys.size() >= max_keys_per_group_) return window;
    found = keys.try_emplace(key).first;
  }
  std::deque<SteadyTime>& times = found->second;
  while (!times.empty() && now - times.front() >= window)
    times.pop_front();
  if (times.size() >= limit_) {
    // Rounded up, so that a caller who waits this long is not refused again.
    return std::chrono::ceil<std::chrono::milliseconds>(window - (now - times.front()));
  }
  times.push_back(now);
  return std::nullopt;
}

}  // namespace hive::policy
