#include "base/backoff.h"

#include <gtest/gtest.h>

namespace hive {
namespace {

using namespace std::chrono_literals;

TEST(BackoffTest, TheCeilingDoublesUpToTheCap) {
  Backoff backoff(1s, 60s, [] { return 1.0; });
  for (const auto expected : {1s, 2s, 4s, 8s, 16s, 32s, 60s, 60s})
    EXPECT_EQ(backoff.next(), expected);
}

TEST(BackoffTest, TheDelayIsDrawnFromZeroToTheCeiling) {
  double share = 0;
  Backoff backoff(1s, 60s, [&share] { return share; });
  EXPECT_EQ(backoff.next(), 0ms);
  share = 0.5;
  EXPECT_EQ(backoff.next(), 1s);
  share = 0.25;
  EXPECT_EQ(backoff.next(), 1s);
}

TEST(BackoffTest, ResetStartsAgain) {
  Backoff backoff(1s, 60s, [] { return 1.0; });
  (void)backoff.next();
  (void)backoff.next();
  backoff.reset();
  EXPECT_EQ(backoff.next(), 1s);
}

TEST(BackoffTest, ABadGeneratorDoesNotBreakTheBounds) {
  Backoff backoff(1s, 60s, [] { return 7.0; });
  EXPECT_EQ(backoff.next(), 1s);
}

}  // namespace
}  // namespace hive
