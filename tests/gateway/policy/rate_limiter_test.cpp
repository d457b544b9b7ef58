#include "gateway/policy/rate_limiter.h"

#include <algorithm>

#include <gtest/gtest.h>

namespace hive::policy {
namespace {

using std::chrono::seconds;

TEST(RateLimiterTest, AcceptsUpToTheLimitInAnyWindow) {
  ManualClock clock;
  RateLimiter limiter(2, 10, clock);
  EXPECT_FALSE(limiter.try_acquire("p", "a").has_value());
  clock.advance(seconds(30));
  EXPECT_FALSE(limiter.try_acquire("p", "a").has_value());
  auto wait = limiter.try_acquire("p", "a");
  ASSERT_TRUE(wait.has_value());
  EXPECT_EQ(*wait, seconds(30));
  clock.advance(*wait);
  EXPECT_FALSE(limiter.try_acquire("p", "a").has_value());
  EXPECT_TRUE(limiter.try_acquire("p", "a").has_value());
}

TEST(RateLimiterTest, RefusedCallsDoNotCount) {
  ManualClock clock;
  RateLimiter limiter(1, 10, clock);
  EXPECT_FALSE(limiter.try_acquire("p", "a").has_value());
  for (int i = 0; i < 100; ++i)
    EXPECT_TRUE(limiter.try_acquire("p", "a").has_value());
  clock.advance(seconds(60));
  EXPECT_FALSE(limiter.try_acquire("p", "a").has_value());
}

TEST(RateLimiterTest, KeysAreIndependent) {
  ManualClock clock;
  RateLimiter limiter(1, 10, clock);
  EXPECT_FALSE(limiter.try_acquire("p", "a").has_value());
  EXPECT_FALSE(limiter.try_acquire("p", "b").has_value());
}

TEST(RateLimiterTest, WhoInventsKeysLocksOutNobodyElse) {
  ManualClock clock;
  RateLimiter limiter(1, 2, clock);
  for (const char* key : {"x", "y", "z"})
    (void)limiter.try_acquire("greedy", key);
  EXPECT_TRUE(limiter.try_acquire("greedy", "new").has_value());
  EXPECT_FALSE(limiter.try_acquire("modest", "new").has_value());
}

TEST(RateLimiterTest, TheNumberOfKeysIsBoundedAndIdleOnesMakeRoom) {
  ManualClock clock;
  RateLimiter limiter(1, 2, clock);
  EXPECT_FALSE(limiter.try_acquire("p", "a").has_value());
  EXPECT_FALSE(limiter.try_acquire("p", "b").has_value());
  EXPECT_TRUE(limiter.try_acquire("p", "c").has_value());
  clock.advance(seconds(60));
  EXPECT_FALSE(limiter.try_acquire("p", "c").has_value());
}

TEST(RateLimiterTest, TheNumberOfGroupsIsBoundedAndIdleOnesMakeRoom) {
  ManualClock clock;
  RateLimiter limiter(1, 10, clock, 2);
  EXPECT_FALSE(limiter.try_acquire("p", "a").has_value());
  clock.advance(seconds(30));
  EXPECT_FALSE(limiter.try_acquire("q", "a").has_value());
  EXPECT_TRUE(limiter.try_acquire("r", "a").has_value());
  EXPECT_FALSE(limiter.try_acquire("q", "b").has_value());
  clock.advance(seconds(30));
  EXPECT_FALSE(limiter.try_acquire("r", "a").has_value());
  EXPECT_TRUE(limiter.try_acquire("q", "a").has_value());
}

TEST(RateLimiterTest, AskingAheadCountsNothing) {
  ManualClock clock;
  RateLimiter limiter(1, 10, clock);
  EXPECT_FALSE(limiter.would_wait("p", "a").has_value());
  EXPECT_FALSE(limiter.would_wait("p", "a").has_value());
  EXPECT_FALSE(limiter.try_acquire("p", "a").has_value());
  clock.advance(seconds(20));
  EXPECT_EQ(limiter.would_wait("p", "a"), seconds(40));
  clock.advance(seconds(40));
  EXPECT_FALSE(limiter.would_wait("p", "a").has_value());
}

TEST(RateLimiterTest, AHighLimitIsHeldExactlyOverManyWindows) {
  ManualClock clock;
  RateLimiter limiter(300, 10, clock);
  // Ten calls a second are twice what is allowed: in every window exactly the limit is accepted.
  std::vector<bool> accepted;
  for (int i = 0; i < 3000; ++i) {
    accepted.push_back(!limiter.try_acquire("p", "a").has_value());
    clock.advance(std::chrono::milliseconds(100));
  }
  for (std::size_t begin = 0; begin + 600 <= accepted.size(); begin += 50)
    EXPECT_EQ(std::count(accepted.begin() + static_cast<long>(begin), accepted.begin() + static_cast<long>(begin) + 600,
                         true),
              300);
}

TEST(RateLimiterTest, ForgettingIdleKeysForgetsNoCallThatCounts) {
  ManualClock clock;
  RateLimiter limiter(1, 1000, clock);
  EXPECT_FALSE(limiter.try_acquire("p", "early").has_value());
  clock.advance(seconds(30));
  for (int i = 0; i < 500; ++i)
    EXPECT_FALSE(limiter.try_acquire("p", std::to_string(i)).has_value());
  EXPECT_TRUE(limiter.try_acquire("p", "early").has_value());
  clock.advance(seconds(30));
  EXPECT_FALSE(limiter.try_acquire("p", "early").has_value());
  for (int i = 0; i < 500; ++i)
    EXPECT_TRUE(limiter.try_acquire("p", std::to_string(i)).has_value());
}

}  // namespace
}  // namespace hive::policy
