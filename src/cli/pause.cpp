#include "cli/pause.h"

#include <algorithm>
#include <cerrno>
#include <random>

#include <poll.h>

namespace hive::cli {

bool pause_for(std::chrono::milliseconds duration, int cancel_fd) {
  auto end = std::chrono::steady_clock::now() + duration;
  while (true) {
    auto left = std::chrono::ceil<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
    pollfd cancelled{cancel_fd, POLLIN, 0};
    int ready = ::poll(&cancelled, 1, static_cast<int>(std::clamp<long long>(left.count(), 0, 3'600'000)));
    if (ready > 0) return false;
    if (ready == 0 && std::chrono::steady_clock::now() >= end) return true;
    if (ready < 0 && errno != EINTR) return true;
  }
}

std::chrono::milliseconds jittered(std::chrono::milliseconds duration) {
  static thread_local std::minstd_rand generator(std::random_device{}());
  long long fifth = duration.count() / 5;
  return duration + std::chrono::milliseconds(std::uniform_int_distribution<long long>(-fifth, fifth)(generator));
}

std::chrono::milliseconds Backoff::next() {
  std::chrono::milliseconds now = next_;
  next_ = std::min(next_ * 2, longest_);
  return jittered(now);
}

}  // namespace hive::cli
