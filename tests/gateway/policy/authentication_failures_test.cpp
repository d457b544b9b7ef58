#include "gateway/policy/authentication_failures.h"

#include <gtest/gtest.h>

namespace hive::policy {
namespace {

using std::chrono::seconds;

class AuthenticationFailuresTest : public testing::Test {
 protected:
  ManualClock clock;
  AuthenticationFailures failures{
      clock, {.max_sources = 3, .free_failures = 5, .period = seconds(60), .max_reports_a_period = 4}};

  std::size_t fail(const std::string& source, int times = 1) {
    std::size_t reports = 0;
    for (int i = 0; i < times; ++i)
      reports += failures.record(source, "unknown_token").size();
    return reports;
  }
};

TEST_F(AuthenticationFailuresTest, ASourceMayFailAFewTimes) {
  EXPECT_EQ(failures.must_wait("a"), std::nullopt);
  fail("a", 4);
  EXPECT_EQ(failures.must_wait("a"), std::nullopt);
  fail("a");
  EXPECT_EQ(failures.must_wait("a"), seconds(60));
  EXPECT_EQ(failures.must_wait("b"), std::nullopt);
}

TEST_F(AuthenticationFailuresTest, TheWaitEndsWithThePeriod) {
  fail("a", 100);
  clock.advance(std::chrono::milliseconds(30'500));
  EXPECT_EQ(failures.must_wait("a"), seconds(30));
  clock.advance(seconds(30));
  EXPECT_EQ(failures.must_wait("a"), std::nullopt);
  fail("a", 4);
  EXPECT_EQ(failures.must_wait("a"), std::nullopt);
}

TEST_F(AuthenticationFailuresTest, TheFirstFailureIsReportedAtOnceAndTheOthersOnceAMinute) {
  EXPECT_EQ(fail("a"), 1u);
  EXPECT_EQ(fail("a", 50), 0u);
  clock.advance(seconds(60));
  auto reports = failures.take_due();
  ASSERT_EQ(reports.size(), 1u);
  EXPECT_EQ(reports[0].source, "a");
  EXPECT_EQ(reports[0].count, 50u);
  EXPECT_EQ(reports[0].reason, "unknown_token");
  EXPECT_EQ(fail("a", 10), 0u);
  clock.advance(seconds(59));
  EXPECT_TRUE(failures.take_due().empty());
  clock.advance(seconds(1));
  ASSERT_EQ(failures.take_due().size(), 1u);
}

TEST_F(AuthenticationFailuresTest, AQuietSourceIsForgotten) {
  fail("a");
  clock.advance(seconds(60));
  EXPECT_TRUE(failures.take_due().empty());
  EXPECT_EQ(fail("a"), 1u);
}

TEST_F(AuthenticationFailuresTest, FurtherSourcesShareOneCount) {
  fail("a");
  fail("b");
  fail("c");
  std::size_t reports = 0;
  for (int i = 0; i < 1000; ++i)
    reports += fail("source " + std::to_string(i));
  EXPECT_EQ(reports, 1u);
  EXPECT_NE(failures.must_wait("any other"), std::nullopt);
  EXPECT_EQ(failures.must_wait("a"), std::nullopt);
  clock.advance(seconds(61));
  auto due = failures.take_due();
  ASSERT_EQ(due.size(), 1u);
  EXPECT_EQ(due[0].source, "other sources");
  EXPECT_EQ(due[0].count, 999u);
}

TEST_F(AuthenticationFailuresTest, ReportsArePostponedAndNotLostWhenThereAreTooMany) {
  fail("a", 2);
  fail("b", 2);
  fail("c", 2);
  fail("d", 2);
  clock.advance(seconds(60));
  EXPECT_EQ(failures.take_due().size(), 4u);
  fail("a", 3);
  auto rest = failures.take_due(true);
  EXPECT_TRUE(rest.empty());  // four in this period already
  clock.advance(seconds(61));
  rest = failures.take_due();
  ASSERT_EQ(rest.size(), 1u);
  EXPECT_EQ(rest[0].count, 3u);
}

TEST_F(AuthenticationFailuresTest, AtTheEndEverythingIsHandedOver) {
  fail("a", 7);
  auto rest = failures.take_due(true);
  ASSERT_EQ(rest.size(), 1u);
  EXPECT_EQ(rest[0].count, 6u);
}

}  // namespace
}  // namespace hive::policy
