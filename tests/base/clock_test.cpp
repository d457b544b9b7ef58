#include "base/clock.h"

#include <gtest/gtest.h>

namespace hive {
namespace {

TEST(ClockTest, FormatsUtcWithMilliseconds) {
  EXPECT_EQ(format_rfc3339(WallTime(std::chrono::milliseconds(0))), "1970-01-01T00:00:00.000Z");
  EXPECT_EQ(format_rfc3339(WallTime(std::chrono::milliseconds(1'796'043'443'123))), "2026-11-30T12:57:23.123Z");
  EXPECT_EQ(format_rfc3339(WallTime(std::chrono::milliseconds(-1))), "1969-12-31T23:59:59.999Z");
}

TEST(ClockTest, AManualClockMovesOnlyWhenTold) {
  ManualClock clock;
  SteadyTime before = clock.steady_now();
  clock.step_wall(std::chrono::hours(1));
  EXPECT_EQ(clock.steady_now(), before);
  clock.advance(std::chrono::seconds(2));
  EXPECT_EQ(clock.steady_now() - before, std::chrono::seconds(2));
}

}  // namespace
}  // namespace hive
