#include "cli/explain_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/program_run.h"

namespace hive::cli {
namespace {

using test::FakeGateway;
using test::ProgramRun;
using test::run_program;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

std::string explanation(std::string_view verdict, std::string_view reason) {
  return R"({"verdict":")" + std::string(verdict) + R"(","reason":")" + std::string(reason) +
         R"(","tier":"admin","tier_rule":"gateway.json:9: risk_tiers.run_command","gates":[)"
         R"({"gate":"role","verdict":"allow","reason":"","message":"","rule":"gateway.json:4: tokens[0]"},)"
         R"({"gate":"approval","verdict":"ask","reason":"approval_required","message":"one admin must agree\u001b[2J",)"
         R"("rule":"gateway.json:12: require_approval_tiers"}]})";
}

class ExplainTest : public testing::Test {
 protected:
  ExplainTest() { gateway_.answers["/api/explain"] = {200, explanation("ask", "approval_required")}; }

  ProgramRun run(std::vector<std::string> words) {
    words.insert(words.begin(), "explain");
    return run_program(words, gateway_.variables());
  }

  FakeGateway gateway_;
};

TEST_F(ExplainTest, ShowsWhatEachGateSaysAndTheLineThatDecides) {
  ProgramRun explained = run({"e__run_command", "name:=\"df\""});
  EXPECT_EQ(explained.exit_code, 6) << explained.error;
  EXPECT_EQ(gateway_.last_body(), R"({"name":"e__run_command","arguments":{"name":"df"}})");
  EXPECT_EQ(explained.out,
            "e__run_command would wait for the approval of other people (approval_required)\n"
            "Its tier is admin: gateway.json:9: risk_tiers.run_command\n\n"
            "GATE       VERDICT   WHY\n"
            "role       allow     gateway.json:4: tokens[0]\n"
            "approval   ask       gateway.json:12: require_approval_tiers\n"
            "                     one admin must agree\\x1b[2J (approval_required)\n");
}

TEST_F(ExplainTest, ExplainsARefusalOfAnAgentWhoseToolsAreNotListed) {
  gateway_.answers["/api/tools"] = {200, R"({"tools":[]})"};
  gateway_.answers["/api/explain"] = {
      200,
      R"({"verdict":"deny","reason":"scope","tier":"write","tier_rule":"built-in","gates":[)"
      R"({"gate":"scope","verdict":"deny","reason":"scope","message":"out of reach","rule":"gateway.json:9: tags"}]})"};
  ProgramRun explained = run({"e__run_command", "name=df"});
  EXPECT_EQ(explained.exit_code, 3) << explained.error;
  EXPECT_THAT(explained.out, AllOf(HasSubstr("would be denied (scope)"), HasSubstr("gateway.json:9: tags")));
}

TEST_F(ExplainTest, EachVerdictHasItsExitCode) {
  for (auto [verdict, exit_code] : {std::pair("allow", 0), {"deny", 3}, {"ask", 6}, {"unknown", 8}, {"?", 8}}) {
    gateway_.answers["/api/explain"] = {200, explanation(verdict, "")};
    EXPECT_EQ(run({"e__t"}).exit_code, exit_code) << verdict;
  }
  EXPECT_THAT(run({"e__t", "-o", "json"}).out, HasSubstr("\"tier\": \"admin\""));
}

TEST_F(ExplainTest, AsksForSomebodyElse) {
  run({"e__t", "--as-role", "operator", "--as-identity", "alice", "--as-groups", "ops,dba", "--as-agents", "edge-*",
       "--as-tags=web", "--as-tools", "get_*,read_logs"});
  EXPECT_EQ(gateway_.last_body(),
            R"({"name":"e__t","arguments":{},"as":{"role":"operator","identity":"alice","groups":["ops","dba"],)"
            R"("agents":["edge-*"],"tags":["web"],"tools":["get_*","read_logs"]}})");
  run({"--as-role", "admin", "e__t", "a:=1", "--as-groups", "x", "b:=2"});
  EXPECT_EQ(gateway_.last_body(), R"({"name":"e__t","arguments":{"a":1,"b":2},"as":{"role":"admin","groups":["x"]}})");
}

TEST_F(ExplainTest, SendsNothingWhenTheCommandLineIsWrong) {
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
           {}, {"e__t", "x"}, {"e__t", "--as-identity", "alice"}, {"e__t", "--as-role", "root"}}) {
    EXPECT_EQ(run(words).exit_code, 2) << testing::PrintToString(words);
  }
  EXPECT_THAT(run({}).error, AllOf(HasSubstr("myrmex explain AGENT__TOOL"), Not(HasSubstr("myrmex call"))));
  EXPECT_THAT(gateway_.requests, IsEmpty());
}

TEST_F(ExplainTest, AnswersThatExplainNothingAreRefused) {
  for (const char* body : {"{}", "[]", R"({"verdict":1})", R"({"verdict":"deny","gates":[1]})"}) {
    gateway_.answers["/api/explain"] = {200, body};
    EXPECT_EQ(run({"e__t"}).exit_code, 1) << body;
  }
  gateway_.answers["/api/explain"] = {403, R"({"detail":"only admins may ask for others"})"};
  EXPECT_EQ(run({"e__t"}).exit_code, 3);
}

}  // namespace
}  // namespace hive::cli
