#include "gateway/policy/rate_limiter.h"

namespace hive::policy {

std::optional<std::chrono::milliseconds> RateLimiter::try_acquire(const std::string& key) {
  SteadyTime now = clock_.steady_now();
  std::lock_guard lock(mutex_);
  auto found = accepted_.find(key);
  if (found == accepted_.end()) {
    if (accepted_.size() >= max_keys_) forget_idle_keys(now);
    if (accepted_.size() >= max_keys_) return window;
    found = accepted_.try_emplace(key).first;
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

void RateLimiter::forget_idle_keys(SteadyTime now) {
  std::erase_if(accepted_,
                [now](const auto& entry) { return entry.second.empty() || now - entry.second.back() >= window; });
}

}  // namespace hive::policy
