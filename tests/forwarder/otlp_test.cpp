#include "forwarder/otlp.h"

#include <vector>

#include <gmock/gmock.h>

#include "protocol/json.h"

namespace hive::forwarder {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

JournalEntry entry(std::string message) {
  return {.cursor = "s=1;i=2;b=3",
          .boot_id = "b",
          .monotonic_us = 5,
          .realtime_us = 1'800'000'000'000'001,
          .priority = 3,
          .message = std::move(message),
          .unit = "nginx.service",
          .identifier = "nginx",
          .pid = "42"};
}

const Resource resource{.service_name = "h-iris", .host_name = "h-iris", .machine_id = "0123"};
const WallTime now{std::chrono::seconds(1'800'000'001)};

TEST(Otlp, SendsAnEntryWithItsTimeSeverityAndOrigin) {
  const std::vector<JournalEntry> entries{entry("disk is full")};
  const std::string body = export_request(resource, entries, now);
  ASSERT_TRUE(json::validate(body));
  EXPECT_THAT(body, HasSubstr(R"("timeUnixNano":"1800000000000001000")"));
  EXPECT_THAT(body, HasSubstr(R"("observedTimeUnixNano":"1800000001000000000")"));
  EXPECT_THAT(body, HasSubstr(R"("severityNumber":17,"severityText":"err")"));
  EXPECT_THAT(body, HasSubstr(R"("body":{"stringValue":"disk is full"})"));
  EXPECT_THAT(body, HasSubstr(R"({"key":"systemd.unit","value":{"stringValue":"nginx.service"}})"));
  EXPECT_THAT(body, HasSubstr(R"({"key":"service.name","value":{"stringValue":"h-iris"}})"));
}

TEST(Otlp, StaysJsonWhateverAMessageHolds) {
  for (const char* message : {"\"}]}]}", "\xff\xfe", "a\nb\tc\x01", "\xe2\x80\xa8", ""}) {
    const std::vector<JournalEntry> entries{entry(message), entry(message)};
    const std::string body = export_request(resource, entries, now);
    EXPECT_TRUE(json::validate(body)) << body;
    EXPECT_THAT(body, Not(HasSubstr("\n")));
  }
}

TEST(Otlp, GivesAnEntryTheSameIdWheneverItIsSent) {
  EXPECT_EQ(record_uid(entry("a")), record_uid(entry("b")));
  JournalEntry other = entry("a");
  other.cursor += "x";
  EXPECT_NE(record_uid(entry("a")), record_uid(other));
  EXPECT_EQ(record_uid(other).size(), 32u);
}

TEST(Otlp, TakesPrioritiesThatCannotBeForTheNearest) {
  EXPECT_EQ(severity_number(-7), severity_number(0));
  EXPECT_EQ(severity_number(99), severity_number(7));
}

TEST(Otlp, ReadsHowManyRecordsWereRejected) {
  EXPECT_EQ(rejected_records(R"({"partialSuccess":{"rejectedLogRecords":"3"}})"), 3);
  EXPECT_EQ(rejected_records(R"({"partialSuccess":{"rejectedLogRecords":3}})"), 3);
  for (const char* answer : {"{}", "", "<html>", R"({"partialSuccess":null})", R"({"partialSuccess":{}})"})
    EXPECT_EQ(rejected_records(answer), 0) << answer;
}

}  // namespace
}  // namespace hive::forwarder
