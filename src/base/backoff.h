#pragma once

#include <algorithm>
#include <chrono>
#include <functional>
#include <utility>

namespace hive {

/// Exponential backoff with full jitter: each delay is drawn from zero to a ceiling that doubles, so that those who
/// lost one peer in one moment do not come back in one moment.
class Backoff {
 public:
  using Duration = std::chrono::milliseconds;

  /// `random` gives numbers from 0 to 1.
  Backoff(Duration base, Duration cap, std::function<double()> random)
      : base_(base), cap_(cap), ceiling_(base), random_(std::move(random)) {}

  /// The delay before the next try.
  [[nodiscard]] Duration next() {
    const double share = std::clamp(random_(), 0.0, 1.0);
    const Duration ceiling = std::exchange(ceiling_, std::min(ceiling_ * 2, cap_));
    return Duration(static_cast<Duration::rep>(static_cast<double>(ceiling.count()) * share));
  }

  /// Only for what proves that the peer works again.
  void reset() { ceiling_ = base_; }

 private:
  Duration base_;
  Duration cap_;
  Duration ceiling_;
  std::function<double()> random_;
};

}  // namespace hive
