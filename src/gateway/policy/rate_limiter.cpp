#include "gateway/policy/rate_limiter.h"

#include <algorithm>

namespace hive::policy {

namespace {

constexpr std::chrono::seconds time_between_sweeps{1};
constexpr std::size_t smallest_sweep = 64;

// The first of the times that still counts.
template <class Times>
auto first_counted(Times& times, SteadyTime now) {
  return std::ranges::partition_point(times, [now](SteadyTime time) { return now - time >= RateLimiter::window; });
}

}  // namespace

bool RateLimiter::Sweeps::due(std::size_t size, std::size_t max, SteadyTime now) const {
  if (size < std::min(at_size, max)) return false;
  // Who keeps a full table full must not make every call look through it.
  return size < max || now - last >= time_between_sweeps;
}

void RateLimiter::Sweeps::done(std::size_t size, SteadyTime now) {
  at_size = std::max(smallest_sweep, 2 * size);
  last = now;
}

void RateLimiter::forget_idle_keys(Group& group, SteadyTime now) {
  std::erase_if(group.keys, [now](const auto& entry) { return now - entry.second.back() >= window; });
  group.sweeps.done(group.keys.size(), now);
}

RateLimiter::Group* RateLimiter::find_or_add(const std::string& name, SteadyTime now) {
  if (auto found = groups_.find(name); found != groups_.end()) return &found->second;
  if (sweeps_.due(groups_.size(), max_groups_, now)) {
    for (auto group = groups_.begin(); group != groups_.end();) {
      forget_idle_keys(group->second, now);
      group = group->second.keys.empty() ? groups_.erase(group) : std::next(group);
    }
    sweeps_.done(groups_.size(), now);
  }
  return groups_.size() >= max_groups_ ? nullptr : &groups_[name];
}

std::optional<std::chrono::milliseconds> RateLimiter::wait_of(const Times& times, SteadyTime now) const {
  auto first = first_counted(times, now);
  if (static_cast<std::size_t>(times.end() - first) < limit_) return std::nullopt;
  // Rounded up, so that a caller who waits this long is not refused again.
  return std::chrono::ceil<std::chrono::milliseconds>(window - (now - *first));
}

std::optional<std::chrono::milliseconds> RateLimiter::try_acquire(const std::string& group, const std::string& key) {
  SteadyTime now = clock_.steady_now();
  std::lock_guard lock(mutex_);
  if (limit_ == 0) return window;
  Group* owner = find_or_add(group, now);
  if (owner == nullptr) return window;
  auto found = owner->keys.find(key);
  if (found == owner->keys.end()) {
    if (owner->sweeps.due(owner->keys.size(), max_keys_per_group_, now)) forget_idle_keys(*owner, now);
    if (owner->keys.size() >= max_keys_per_group_) return window;
    owner->keys.try_emplace(key, 1, now);
    return std::nullopt;
  }
  Times& times = found->second;
  if (auto wait = wait_of(times, now)) return wait;
  auto first = first_counted(times, now);
  // Moving what counts to the front pays when at least as much is thrown away.
  if (first - times.begin() > times.end() - first) times.erase(times.begin(), first);
  times.push_back(now);
  return std::nullopt;
}

std::optional<std::chrono::milliseconds> RateLimiter::would_wait(const std::string& group,
                                                                 const std::string& key) const {
  SteadyTime now = clock_.steady_now();
  std::lock_guard lock(mutex_);
  if (limit_ == 0) return window;
  auto owner = groups_.find(group);
  if (owner == groups_.end()) return std::nullopt;
  auto found = owner->second.keys.find(key);
  return found == owner->second.keys.end() ? std::nullopt : wait_of(found->second, now);
}

}  // namespace hive::policy
