#include "gateway/audit/entry.h"

#include <gmock/gmock.h>

#include "base/strings.h"
#include "crypto/sha256.h"
#include "protocol/json.h"

namespace hive::audit {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string line_of(const Record& record, size_t max_arguments_bytes = 16384) {
  std::string line;
  append_entry_head(line, 7);
  append_entry_body(line, record, WallTime(std::chrono::milliseconds(1'800'000'000'123)), max_arguments_bytes);
  return line;
}

Record full_record() {
  Record record;
  record.kind = RecordKind::outcome;
  record.call_id = "c1";
  record.request_id = "r1";
  record.principal = "ann";
  record.role = "operator";
  record.surface = "rest";
  record.on_behalf_of = "bob";
  record.action = "tool_call";
  record.agent = "edge-1";
  record.tool = "run_command";
  record.tier = "write";
  record.arguments = R"({"name":"df"})";
  record.after_untrusted_text = true;
  record.outcome = protocol::Outcome::failure;
  record.reason = "exit_code";
  record.detail = "exited with 1";
  record.duration_us = 1234;
  return record;
}

TEST(AuditEntry, IsOneLineWithItsKeysInAFixedOrder) {
  EXPECT_EQ(line_of(full_record()),
            R"({"seq":7,"time":"2027-01-15T08:00:00.123Z","kind":"outcome","call_id":"c1","request_id":"r1",)"
            R"("principal":"ann","role":"operator","surface":"rest","on_behalf_of":"bob","action":"tool_call",)"
            R"("agent":"edge-1","tool":"run_command","tier":"write","arguments":"{\"name\":\"df\"}",)"
            R"("after_untrusted_text":true,"outcome":"failure","reason":"exit_code","detail":"exited with 1",)"
            R"("duration_us":1234})");
}

TEST(AuditEntry, LeavesOutWhatIsEmpty) {
  EXPECT_EQ(line_of(Record{}), R"({"seq":7,"time":"2027-01-15T08:00:00.123Z","kind":"event"})");
}

TEST(AuditEntry, ComesBackFieldByField) {
  std::string line = line_of(full_record());
  auto entry = EntryView::parse(line);
  ASSERT_TRUE(entry) << entry.error().message;
  EXPECT_EQ(entry->seq(), 7u);
  EXPECT_EQ(entry->text(Field::arguments), R"({"name":"df"})");
  EXPECT_EQ(entry->text(Field::duration_us), "1234");
  EXPECT_TRUE(entry->equals(Field::arguments, R"({"name":"df"})"));
  EXPECT_TRUE(entry->equals(Field::agent, "edge-1"));
  EXPECT_FALSE(entry->equals(Field::agent, "edge-10"));
  EXPECT_TRUE(entry->equals(Field::after_untrusted_text, "true"));
  EXPECT_FALSE(entry->has(Field::arguments_bytes));
}

// Row 149: whatever a name or an argument holds, it stays one record, and reads as what it was.
TEST(AuditEntry, HostileTextCannotBreakTheLine) {
  for (std::string text : {std::string("a\vb"), std::string("a\xc2\x85") + "b", std::string("a\u2028b\u2029"),
                           std::string("x\r\n{\"forged\":1}"), std::string("\",\"outcome\":\"success"),
                           std::string("a\0b", 3), std::string("\\"), std::string("\x7f\x1b[2J")}) {
    Record record = full_record();
    record.principal = text;
    record.arguments = text;
    record.detail = text;
    std::string line = line_of(record);
    EXPECT_EQ(line.find_first_of("\n\r\v\f"), std::string::npos);
    for (std::string_view separator : {"\xc2\x85", "\u2028", "\u2029"})
      EXPECT_THAT(line, Not(HasSubstr(separator)));
    auto entry = EntryView::parse(line);
    ASSERT_TRUE(entry) << line;
    EXPECT_EQ(entry->text(Field::principal), text);
    EXPECT_EQ(entry->text(Field::arguments), text);
    EXPECT_TRUE(entry->equals(Field::principal, text));
    EXPECT_TRUE(entry->equals(Field::outcome, "failure"));
    EXPECT_TRUE(json::validate(line));
  }
}

TEST(AuditEntry, InvalidUtf8BecomesAReplacementCharacter) {
  Record record;
  record.detail = "a\xff\xc1z";
  std::string line = line_of(record);
  EXPECT_TRUE(EntryView::parse(line));
  EXPECT_TRUE(json::validate(line));
}

TEST(AuditEntry, LongArgumentsAreCutBetweenCharactersWithSizeAndHash) {
  Record record;
  record.arguments = std::string(9, 'a') + "\u20ac" + std::string(50, 'b');
  std::string line = line_of(record, 10);
  auto entry = EntryView::parse(line);
  ASSERT_TRUE(entry);
  EXPECT_EQ(entry->text(Field::arguments), "aaaaaaaaa");
  EXPECT_EQ(entry->text(Field::arguments_bytes), "62");
  EXPECT_EQ(entry->text(Field::arguments_sha256), to_hex(crypto::sha256(record.arguments)));
}

TEST(AuditEntry, ArgumentsOfExactlyTheLimitAreWhole) {
  Record record;
  record.arguments = std::string(10, 'a');
  std::string line = line_of(record, 10);
  EXPECT_EQ(EntryView::parse(line)->text(Field::arguments), record.arguments);
  EXPECT_THAT(line, Not(HasSubstr("arguments_bytes")));
}

TEST(AuditEntry, TheWorstRecordStaysBelowTheLongestLine) {
  Record record = full_record();
  std::string worst(size_t{2} << 20, '\x01');  // six bytes a character when escaped
  for (std::string* text :
       {&record.call_id, &record.request_id, &record.principal, &record.role, &record.surface, &record.on_behalf_of,
        &record.action, &record.agent, &record.tool, &record.tier, &record.arguments, &record.reason, &record.detail}) {
    *text = worst;
  }
  std::string line = line_of(record, size_t{1} << 30);
  EXPECT_LE(line.size(), max_line_bytes);
  auto entry = EntryView::parse(line);
  ASSERT_TRUE(entry);
  EXPECT_THAT(entry->text(Field::principal), HasSubstr("... (2097152 bytes)"));
}

TEST(AuditEntry, LinesThatAreNotExactlyOneEntryAreRefused) {
  const std::string good = R"({"seq":1,"time":"t","kind":"event"})";
  ASSERT_TRUE(EntryView::parse(good));
  for (std::string bad : {
           std::string(),
           std::string("{}"),
           std::string("[]"),
           std::string("null"),
           good + " ",
           " " + good,
           good + good,
           good.substr(0, good.size() - 1),
           std::string(R"({"seq": 1,"time":"t","kind":"event"})"),
           std::string(R"({"seq":01,"time":"t","kind":"event"})"),
           std::string(R"({"seq":-1,"time":"t","kind":"event"})"),
           std::string(R"({"seq":1.0,"time":"t","kind":"event"})"),
           std::string(R"({"seq":"1","time":"t","kind":"event"})"),
           std::string(R"({"seq":18446744073709551616,"time":"t","kind":"event"})"),
           std::string(R"({"time":"t","kind":"event"})"),
           std::string(R"({"seq":1,"kind":"event"})"),
           std::string(R"({"seq":1,"time":"t"})"),
           std::string(R"({"time":"t","seq":1,"kind":"event"})"),
           std::string(R"({"seq":1,"time":"t","kind":"event","kind":"event"})"),
           std::string(R"({"seq":1,"time":"t","kind":"event","role":"a","principal":"b"})"),
           std::string(R"({"seq":1,"time":"t","kind":7})"),
           std::string(R"({"seq":1,"time":"t","kind":"event","arguments":{}})"),
           std::string(R"({"seq":1,"time":"t","kind":"event","detail":null})"),
           std::string(R"({"seq":1,"time":"t","kind":"ev\xent"})"),
           std::string(R"({"seq":1,"time":"t","kind":"ev\u12"})"),
           std::string("{\"seq\":1,\"time\":\"t\",\"kind\":\"ev\x01nt\"}"),
           std::string("{\"seq\":1,\"time\":\"t\",\"kind\":\"ev\xffnt\"}"),
           std::string(R"({"seq":1,"time":"t","kind":"event)"),
           std::string(R"({"seq":1,"time":"t","kind":"event\)"),
       }) {
    EXPECT_FALSE(EntryView::parse(bad)) << bad;
  }
}

TEST(AuditEntry, AKeyOfALaterVersionIsAllowed) {
  EXPECT_TRUE(EntryView::parse(R"({"seq":1,"time":"t","kind":"event","later":"x","detail":"d","much_later":5})"));
}

TEST(AuditEntry, WhatTwoJsonReadersCouldReadDifferentlyIsRefused) {
  for (std::string_view bad : {
           R"({"seq":1,"time":"t","kind":"event","later":"x","later":"y"})",
           R"({"seq":1,"time":"t","kind":"event","later":"x","detail":"d","later":"y"})",
           R"({"seq":1,"time":"t","kind":"event","outc\u006fme":"success"})",
           R"({"seq":1,"time":"t","kind":"event","outcome":"denied","outc\u006fme":"success"})",
           R"({"s\u0065q":1,"seq":1,"time":"t","kind":"event"})",
           R"({"seq":1,"time":"t","kind":"event","lat\"er":1})",
           R"({"seq":1,"time":"t","kind":"event","":1})",
       }) {
    EXPECT_FALSE(EntryView::parse(bad)) << bad;
  }
}

TEST(AuditEntry, KeysThatAreNotKnownAreFew) {
  auto with_unknown = [](int count) {
    std::string line = R"({"seq":1,"time":"t","kind":"event")";
    for (int i = 0; i < count; ++i)
      line += fmt::format(R"(,"later_{}":1)", i);
    return line + "}";
  };
  EXPECT_TRUE(EntryView::parse(with_unknown(32)));
  EXPECT_FALSE(EntryView::parse(with_unknown(33)));
}

TEST(AuditEntry, ALoneSurrogateIsRefusedAndAPairIsNot) {
  auto with_detail = [](std::string_view detail) {
    return fmt::format(R"({{"seq":1,"time":"t","kind":"event","detail":"{}"}})", detail);
  };
  for (std::string_view bad :
       {"\\ud800", "\\udc00", "\\udc00\\ud800", "\\ud800\\ud800", "\\ud800x", "\\ud800\\n", "\\u+123"}) {
    EXPECT_FALSE(EntryView::parse(with_detail(bad))) << bad;
    EXPECT_FALSE(json::validate(with_detail(bad))) << bad;
  }
  std::string good = with_detail("\\ud83d\\ude00");
  auto entry = EntryView::parse(good);
  ASSERT_TRUE(entry);
  EXPECT_TRUE(json::validate(good));
  EXPECT_EQ(entry->text(Field::detail), "\U0001f600");
}

}  // namespace
}  // namespace hive::audit
