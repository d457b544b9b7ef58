#include "gateway/policy/rate_limiter.h"

#include <algorithm>

namespace hive::policy {

namespace {
constexpr std::chrono::seconds time_between_sweeps{1};
}

void RateLimiter::forget_idle_keys(Keys& keys, SteadyTime now) {
  std::erase_if(keys, [now](const auto& entry) { return now - entry.second.back() >= window; });
}

void RateLimiter::forget_idle_groups(SteadyTime now) {
  // Looking at every group for every call of a flood of new ones would be the flood's gain.
  if (now - last_sweep_ < time_between_sweeps) return;
  last_sweep_ = now;
  for (auto group = accepted_.begin(); group != accepted_.end();) {
    forget_idle_keys(group->second, now);
    group = group->second.empty() ? accepted_.erase(group) : std::next(group);
  }
}

std::optional<std::chrono::milliseconds> RateLimiter::wait_of(const Times& times, SteadyTime now) const {
  auto first_counted = std::ranges::find_if(times, [now](SteadyTime time) { return now - time < window; });
  auto counted = static_cast<std::size_t>(times.end() - first_counted);
  if (counted < limit_) return std::nullopt;
  // Rounded up, so that a caller who waits this long is not refused again.
  return std::chrono::ceil<std::chrono::milliseconds>(window - (now - *first_counted));
}

std::optional<std::chrono::milliseconds> RateLimiter::try_acquire(const std::string& group, const std::string& key) {
  SteadyTime now = clock_.steady_now();
  std::lock_guard lock(mutex_);
  if (limit_ == 0) return window;
  auto keys = accepted_.find(group);
  if (keys == accepted_.end()) {
    if (accepted_.size() >= max_groups_) forget_idle_groups(now);
    if (accepted_.size() >= max_groups_) return window;
    keys = accepted_.try_emplace(group).first;
  }
  auto times = keys->second.find(key);
  if (times == keys->second.end()) {
    if (keys->second.size() >= max_keys_per_group_) forget_idle_keys(keys->second, now);
    if (keys->second.size() >= max_keys_per_group_) return window;
    keys->second.try_emplace(key, 1, now);
    return std::nullopt;
  }
  while (!times->second.empty() && now - times->second.front() >= window)
    times->second.pop_front();
  if (auto wait = wait_of(times->second, now)) return wait;
  times->second.push_back(now);
  return std::nullopt;
}

std::optional<std::chrono::milliseconds> RateLimiter::would_wait(const std::string& group,
                                                                 const std::string& key) const {
  SteadyTime now = clock_.steady_now();
  std::lock_guard lock(mutex_);
  if (limit_ == 0) return window;
  auto keys = accepted_.find(group);
  if (keys == accepted_.end()) return std::nullopt;
  auto times = keys->second.find(key);
  return times == keys->second.end() ? std::nullopt : wait_of(times->second, now);
}

}  // namespace hive::policy
