#pragma once

#include <chrono>

namespace hive::cli {

/// Waits; false as soon as `cancel_fd` is readable (Ctrl-C). -1: cannot be interrupted.
[[nodiscard]] bool pause_for(std::chrono::milliseconds duration, int cancel_fd);

/// How long to wait between attempts that fail: longer each time, and at random, so that many clients do not come back
/// to a restarted gateway at the same moment.
class Backoff {
 public:
  Backoff(std::chrono::milliseconds shortest, std::chrono::milliseconds longest)
      : shortest_(shortest), longest_(longest), next_(shortest) {}

  [[nodiscard]] std::chrono::milliseconds next();
  void reset() { next_ = shortest_; }

 private:
  std::chrono::milliseconds shortest_;
  std::chrono::milliseconds longest_;
  std::chrono::milliseconds next_;
};

/// Within a fifth of `duration`, at random.
std::chrono::milliseconds jittered(std::chrono::milliseconds duration);

}  // namespace hive::cli
