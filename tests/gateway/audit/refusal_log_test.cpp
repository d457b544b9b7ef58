#include "gateway/audit/refusal_log.h"

#include <gtest/gtest.h>

namespace hive::audit::test {
namespace {

using std::chrono::seconds;

Record refusal(const std::string& principal, const std::string& detail = "GET /x") {
  Record record;
  record.action = "access_denied";
  record.principal = principal;
  record.detail = detail;
  return record;
}

TEST(RefusalLog, WritesTheFirstOnesAndSumsUpTheOthers) {
  ManualClock clock;
  RefusalLog refusals(clock, {.written_in_a_period = 2});
  EXPECT_EQ(refusals.admit(refusal("alice", "GET /1")).value().detail, "GET /1");
  EXPECT_EQ(refusals.admit(refusal("alice", "GET /2")).value().detail, "GET /2");
  EXPECT_FALSE(refusals.admit(refusal("alice", "GET /3")));
  EXPECT_FALSE(refusals.admit(refusal("alice", "GET /4")));
  EXPECT_TRUE(refusals.admit(refusal("bob")));
  EXPECT_TRUE(refusals.take_due().empty());
  clock.advance(seconds(61));
  std::vector<Record> due = refusals.take_due();
  ASSERT_EQ(due.size(), 1u);
  EXPECT_EQ(due[0].principal, "alice");
  EXPECT_EQ(due[0].detail, "2 more like this: GET /4");
  EXPECT_TRUE(refusals.admit(refusal("alice")));
}

TEST(RefusalLog, TellsEverythingAtTheEnd) {
  ManualClock clock;
  RefusalLog refusals(clock, {.written_in_a_period = 1});
  EXPECT_TRUE(refusals.admit(refusal("alice")));
  EXPECT_FALSE(refusals.admit(refusal("alice")));
  EXPECT_EQ(refusals.take_due(true).size(), 1u);
  EXPECT_TRUE(refusals.take_due(true).empty());
}

TEST(RefusalLog, MorePrincipalsThanItRemembersShareOneCount) {
  ManualClock clock;
  RefusalLog refusals(clock, {.max_principals = 2, .written_in_a_period = 1});
  int written = 0;
  for (int i = 0; i < 100; ++i)
    written += refusals.admit(refusal("p" + std::to_string(i))) ? 1 : 0;
  EXPECT_EQ(written, 3);
  std::vector<Record> due = refusals.take_due(true);
  ASSERT_EQ(due.size(), 1u);
  EXPECT_EQ(due[0].principal, "other principals");
  EXPECT_TRUE(due[0].detail.starts_with("97 more"));
}

}  // namespace
}  // namespace hive::audit::test
