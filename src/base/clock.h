#pragma once

#include <atomic>
#include <chrono>
#include <string>

namespace hive {

using SteadyTime = std::chrono::steady_clock::time_point;
using WallTime = std::chrono::system_clock::time_point;

/// Where a room gets the time from, so that tests can simulate it. Thread-safe.
class Clock {
 public:
  virtual ~Clock() = default;
  /// For durations and deadlines; never jumps.
  [[nodiscard]] virtual SteadyTime steady_now() const = 0;
  /// For time stamps that people read; may jump.
  [[nodiscard]] virtual WallTime wall_now() const = 0;
};

/// The machine's clocks.
const Clock& system_clock();

/// A clock that stands still until told otherwise.
class ManualClock final : public Clock {
 public:
  [[nodiscard]] SteadyTime steady_now() const override {
    return SteadyTime(std::chrono::nanoseconds(steady_ns_.load()));
  }
  [[nodiscard]] WallTime wall_now() const override { return WallTime(std::chrono::nanoseconds(wall_ns_.load())); }
  void advance(std::chrono::nanoseconds by) {
    steady_ns_ += by.count();
    wall_ns_ += by.count();
  }
  void step_wall(std::chrono::nanoseconds by) { wall_ns_ += by.count(); }

 private:
  std::atomic<long long> steady_ns_ = 1'000'000'000'000;
  std::atomic<long long> wall_ns_ = 1'800'000'000'000'000'000;
};

/// RFC 3339 in UTC with milliseconds: "2026-11-30T12:57:23.123Z".
std::string format_rfc3339(WallTime time);

}  // namespace hive
