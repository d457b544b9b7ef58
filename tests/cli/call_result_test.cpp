#include "cli/call_result.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hive::cli {
namespace {

using protocol::Outcome;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

CallAnswer answer_of(std::string_view body, std::string_view outcome = "", std::string_view reason = "") {
  auto answer = parse_call_answer(body, outcome, reason);
  EXPECT_TRUE(answer) << answer.error().message;
  return answer.value_or(CallAnswer{});
}

std::string result_with_text(std::string_view escaped_text) {
  return R"({"jsonrpc":"2.0","id":"1","result":{"content":[{"type":"text","text":")" + std::string(escaped_text) +
         R"("}]}})";
}

TEST(CallAnswer, BelievesTheGatewaysHeaderFirst) {
  CallAnswer answer = answer_of(R"({"result":{"content":[],"isError":true,"_meta":{"myrmex-hive/outcome":"failure"}}})",
                                "denied", "role");
  EXPECT_EQ(answer.outcome, Outcome::denied);
  EXPECT_EQ(answer.reason, "role");
}

TEST(CallAnswer, ThenTheAgentsField) {
  CallAnswer answer = answer_of(
      R"({"result":{"content":[{"type":"text","text":"x"}],"isError":true,"_meta":{"myrmex-hive/outcome":"denied","myrmex-hive/reason":"not_allowlisted"}}})");
  EXPECT_EQ(answer.outcome, Outcome::denied);
  EXPECT_EQ(answer.reason, "not_allowlisted");
}

TEST(CallAnswer, ThenTheMarkerOfOldAgentsAtTheVeryStartOnly) {
  EXPECT_EQ(answer_of(result_with_text("Command failed/rejected: command failed: exit status 1\\nOutput:\\nx")).outcome,
            Outcome::failure);
  EXPECT_EQ(
      answer_of(result_with_text("Command failed/rejected: command 'x' is not in the approved allowlist\\nOutput:\\n"))
          .outcome,
      Outcome::denied);
  EXPECT_EQ(answer_of(result_with_text("log: Command failed/rejected: x is not in the approved allowlist")).outcome,
            Outcome::success);
}

TEST(CallAnswer, AnErrorOfTheAgentIsNoSuccess) {
  CallAnswer answer = answer_of(
      R"({"error":{"code":-32000,"message":"agent edge-1 is offline","data":{"outcome":"denied","reason":"agent_offline"}}})");
  EXPECT_EQ(answer.outcome, Outcome::denied);
  EXPECT_EQ(exit_code_for(answer.outcome, answer.reason), ExitCode::unreachable);
  EXPECT_EQ(reason_line(answer), "denied, nothing ran: agent edge-1 is offline (agent_offline)");
}

TEST(CallAnswer, RefusesWhatIsNoAnswer) {
  for (const char* body : {"", "[]", "{}", "<html>", "{\"error\":null}"})
    EXPECT_FALSE(parse_call_answer(body, "success", "")) << body;
}

TEST(ReadableText, IndentsJsonAndKeepsNumbers) {
  EXPECT_EQ(readable_text(answer_of(result_with_text(R"({\"cpu_usage_percent\":12.30})"))),
            "{\n  \"cpu_usage_percent\": 12.30\n}\n");
}

TEST(ReadableText, KeepsOtherTextAsItIsWithAFinalNewline) {
  EXPECT_EQ(readable_text(answer_of(result_with_text(" a\\tb\\n\\nc"))), " a\tb\n\nc\n");
  EXPECT_EQ(readable_text(answer_of(result_with_text("42"))), "42\n");
  EXPECT_EQ(readable_text(answer_of(result_with_text("line\\r\\nnext\\r\\n"))), "line\nnext\n");
}

// Row 104 of the field inputs: clipboard writes, cleared screens, overprinted lines, C1 codes.
TEST(ReadableText, EscapesEverythingThatSteersATerminal) {
  std::string text = readable_text(answer_of(
      result_with_text("\\u001b]52;c;ZXZpbA==\\u0007\\u001b[2Jok\\rspoofed\\u009b31m \\u202egnp.exe\\n\\u0000")));
  EXPECT_EQ(text, "\\x1b]52;c;ZXZpbA==\\x07\\x1b[2Jok\\rspoofed\\u{009b}31m \\u{202e}gnp.exe\n\\x00\n");
}

TEST(ReadableText, EscapesInsideJsonToo) {
  std::string text = readable_text(answer_of(result_with_text("{\\\"a\\\":\\\"\\u009b2J\\\"}")));
  EXPECT_EQ(text, "{\n  \"a\": \"\\u009b2J\"\n}\n");
}

TEST(ReadableText, ShowsTheWholeResultWhenThereIsNoText) {
  EXPECT_EQ(readable_text(answer_of(R"({"result":{"content":[]}})")), "{\n  \"content\": []\n}\n");
}

TEST(JsonOutput, IsTheFirstBlockAsJson) {
  EXPECT_EQ(json_output(answer_of(result_with_text(R"({\"cpu_usage_percent\":12.30})"))),
            "{\n  \"cpu_usage_percent\": 12.30\n}\n");
  EXPECT_EQ(json_output(answer_of(result_with_text("42"))), "42\n");
  EXPECT_EQ(json_output(answer_of(result_with_text("plain \\\"text\\\"\\n"))), "\"plain \\\"text\\\"\\n\"\n");
  EXPECT_EQ(json_output(answer_of(R"({"result":{"content":[]}})")), "{\n  \"content\": []\n}\n");
}

TEST(JsonOutput, CannotSteerATerminal) {
  EXPECT_EQ(json_output(answer_of(result_with_text("\\u009b2J\\u001b[2J"))), "\"\\u009b2J\\u001b[2J\"\n");
}

TEST(ReasonLine, TakesTheFirstLineBehindTheMarker) {
  CallAnswer answer =
      answer_of(result_with_text("Command failed/rejected: command failed: exit status 3\\nOutput:\\nsecond"),
                "failure", "exit_status");
  EXPECT_EQ(reason_line(answer), "failed: command failed: exit status 3 (exit_status)");
}

TEST(ReasonLine, IsOneSafeLine) {
  CallAnswer answer = answer_of(R"({"error":{"code":1,"message":"a\u001b[2J\nsecond"}})", "failure", "x\x1b");
  EXPECT_EQ(reason_line(answer), "failed: a\\x1b[2J (x\\x1b)");
}

TEST(ProgressPrinter, PrintsOnlyWhatIsNewAtTheEnd) {
  ProgressPrinter printer;
  EXPECT_EQ(printer.take(R"({"progressToken":1,"progress":1,"message":"one\n"})"), "one\n");
  EXPECT_EQ(printer.take(R"({"progressToken":1,"progress":2,"message":"tw"})"), "tw");
  EXPECT_EQ(printer.rest_of(answer_of(result_with_text("one\\ntwo"))), "o\n");
  EXPECT_EQ(printer.rest_of(answer_of(result_with_text("one\\ntw"))), "\n") << "only the line is ended";
}

TEST(ProgressPrinter, KnowsTheOutputInAFailuresText) {
  ProgressPrinter printer;
  printer.take(R"({"message":"one\n"})");
  EXPECT_EQ(
      printer.rest_of(answer_of(result_with_text("Command failed/rejected: exit status 1\\nOutput:\\none\\ntwo\\n"))),
      "two\n");
}

TEST(ProgressPrinter, PrintsEverythingWhenPiecesWereLost) {
  ProgressPrinter printer;
  printer.take(R"({"message":"one\n"})");
  EXPECT_THAT(printer.rest_of(answer_of(result_with_text("zero\\none\\n"))),
              AllOf(HasSubstr("not complete"), HasSubstr("zero\none\n")));
}

TEST(ProgressPrinter, EscapesAndIgnoresWhatHasNoMessage) {
  ProgressPrinter printer;
  EXPECT_EQ(printer.take(R"({"message":"\u001b[2J"})"), "\\x1b[2J");
  EXPECT_EQ(printer.take(R"({"progress":5})"), "");
  EXPECT_EQ(printer.take("nonsense"), "");
}

}  // namespace
}  // namespace hive::cli
