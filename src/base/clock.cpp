#include "base/clock.h"

#include <ctime>

#include <fmt/format.h>

namespace hive {

namespace {

class MachineClock final : public Clock {
 public:
  [[nodiscard]] SteadyTime steady_now() const override { return std::chrono::steady_clock::now(); }
  [[nodiscard]] WallTime wall_now() const override { return std::chrono::system_clock::now(); }
};

}  // namespace

const Clock& system_clock() {
  static const MachineClock clock;
  return clock;
}

std::string format_rfc3339(WallTime time) {
  auto since_epoch = std::chrono::floor<std::chrono::milliseconds>(time.time_since_epoch());
  auto whole_seconds = std::chrono::floor<std::chrono::seconds>(since_epoch);
  std::time_t seconds = whole_seconds.count();
  std::tm parts{};
  ::gmtime_r(&seconds, &parts);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z", parts.tm_year + 1900, parts.tm_mon + 1,
                     parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec, (since_epoch - whole_seconds).count());
}

}  // namespace hive
