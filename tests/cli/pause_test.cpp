#include "cli/pause.h"

#include <gtest/gtest.h>
#include <unistd.h>

namespace hive::cli {
namespace {

using std::chrono::milliseconds;

TEST(PauseTest, EndsWhenTheTimeIsOverOrSomebodyInterrupts) {
  EXPECT_TRUE(pause_for(milliseconds(1), -1));
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  EXPECT_TRUE(pause_for(milliseconds(1), ends[0]));
  ASSERT_EQ(::write(ends[1], "x", 1), 1);
  EXPECT_FALSE(pause_for(std::chrono::hours(1), ends[0]));
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST(BackoffTest, GrowsToItsLimitAndStartsAgain) {
  Backoff backoff(milliseconds(100), milliseconds(1000));
  milliseconds first = backoff.next();
  EXPECT_GE(first, milliseconds(80));
  EXPECT_LE(first, milliseconds(120));
  for (int k = 0; k < 50; ++k)
    EXPECT_LE(backoff.next(), milliseconds(1200));
  EXPECT_GE(backoff.next(), milliseconds(800));
  backoff.reset();
  EXPECT_LE(backoff.next(), milliseconds(120));
}

}  // namespace
}  // namespace hive::cli
