#include "cli/policy_cases.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hive::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

PolicyCases parse(std::string_view text) {
  auto parsed = parse_policy_cases(text, "f");
  EXPECT_TRUE(parsed) << parsed.error().message;
  return parsed ? *std::move(parsed) : PolicyCases();
}

std::string problem_of(std::string_view text) {
  auto parsed = parse_policy_cases(text, "f");
  return parsed ? "" : parsed.error().message;
}

TEST(PolicyCasesTest, ReadsSubjectsAndCases) {
  PolicyCases parsed = parse(
      "# comment\n\n"
      "e__get_metrics -> allow\n"
      "as role=operator identity=alice groups=ops,dba agents=edge-* tags=web tools=get_*,read_logs\r\n"
      "  edge-1__run_command name=systemctl args=restart args=5 -> ask approval_required tier=admin # why\n"
      "edge-1__get_metrics -> deny\n"
      "as token=tokens[0]\n"
      "e__t -> unknown\n");
  ASSERT_EQ(parsed.cases.size(), 4U);
  ASSERT_EQ(parsed.subjects.size(), 2U);
  EXPECT_EQ(parsed.cases[0].subject, std::nullopt);
  EXPECT_EQ(parsed.cases[0].place, "f:3");
  const AskedAs& as = parsed.subjects[0].as;
  EXPECT_EQ(as.role, "operator");
  EXPECT_EQ(as.identity, "alice");
  EXPECT_THAT(as.groups, ElementsAre("ops", "dba"));
  EXPECT_THAT(as.agents, ElementsAre("edge-*"));
  EXPECT_THAT(as.tools, ElementsAre("get_*", "read_logs"));
  const PolicyCase& restart = parsed.cases[1];
  EXPECT_EQ(restart.subject, 0U);
  EXPECT_EQ(restart.tool, "edge-1__run_command");
  // Typed by the built-in tool: "5" is a text in a list of texts.
  EXPECT_EQ(restart.arguments, R"({"name":"systemctl","args":["restart","5"]})");
  EXPECT_EQ(restart.verdict, "ask");
  EXPECT_EQ(restart.reason, "approval_required");
  EXPECT_EQ(restart.tier, "admin");
  EXPECT_EQ(parsed.cases[2].reason, "");
  EXPECT_EQ(parsed.cases[3].subject, 1U);
  EXPECT_EQ(parsed.subjects[1].token, "tokens[0]");
  EXPECT_TRUE(parsed.subjects[1].needs_configuration());
}

TEST(PolicyCasesTest, QuotesKeepBlanksAndOtherSigns) {
  PolicyCases parsed = parse(
      "as role=admin identity=\"A \\\"B\\\" \\\\\"\n"
      "e__t a='x y' b:='[\"-> #\"]' c=\"#\" d=x#y e=' -> ' -> allow\n"
      "e__t {\"a\":[1]} b=2 -> allow\n"
      "e__t '{\"a\": 1}' -> allow\n");
  EXPECT_EQ(parsed.subjects[0].as.identity, "A \"B\" \\");
  EXPECT_EQ(parsed.cases[0].arguments, R"({"a":"x y","b":["-> #"],"c":"#","d":"x#y","e":" -> "})");
  EXPECT_EQ(parsed.cases[1].arguments, R"({"a":[1],"b":2})");
  EXPECT_EQ(parsed.cases[2].arguments, R"({"a": 1})");
}

TEST(PolicyCasesTest, NamesFileAndLineOfEveryProblem) {
  std::string problems = problem_of("e__t -> allow\ne__t\n\nas role=root\ne__t -> perhaps\n");
  EXPECT_THAT(problems, HasSubstr("f:2: a case is a call"));
  EXPECT_THAT(problems, HasSubstr("f:4: as: \"root\" is no role"));
  EXPECT_THAT(problems, HasSubstr("f:5: \"perhaps\" is not a decision"));
}

TEST(PolicyCasesTest, RefusesWhatItDoesNotUnderstand) {
  for (const char* line : {"e__t ->",
                           "-> allow",
                           "t -> allow",
                           "e__t word -> allow",
                           "e__t a=1 a:=x -> allow",
                           "e__t -> allow because",
                           "e__t -> deny a b",
                           "e__t -> deny tier=huge",
                           "e__t -> deny tier=read tier=read",
                           "e__t 'a -> allow",
                           "e__t a='b'c -> allow",
                           "e__t {] -> allow",
                           "e__t {\"a\":1} a=2 -> allow",
                           "as",
                           "as identity=x",
                           "as role=admin role=admin",
                           "as role=",
                           "as who=me",
                           "as role=admin groups=a,,b",
                           "as token=a role=admin",
                           "as token=a certificate=b",
                           "as token=a groups=b",
                           "as oidc=a agents=b",
                           "as role=admin x"}) {
    EXPECT_THAT(problem_of(line), StartsWith("f:1: ")) << line;
  }
}

TEST(PolicyCasesTest, ManyProblemsAreCounted) {
  std::string text;
  for (int k = 0; k < 60; ++k)
    text += "x\n";
  EXPECT_THAT(problem_of(text), HasSubstr("and 10 more problems"));
}

TEST(PolicyCasesTest, TakesTheSubjectsOfOtherCredentials) {
  PolicyCases parsed = parse("as certificate=ci.example\nas oidc=alice groups=ops\n");
  EXPECT_EQ(parsed.subjects[0].certificate, "ci.example");
  EXPECT_EQ(parsed.subjects[1].oidc, "alice");
  EXPECT_THAT(parsed.subjects[1].as.groups, ElementsAre("ops"));
  EXPECT_THAT(parse("").cases, IsEmpty());
}

}  // namespace
}  // namespace hive::cli
