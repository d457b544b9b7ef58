#include "cli/config_commands.h"

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

class ConfigTest : public testing::Test {
 protected:
  ProgramRun run(std::vector<std::string> words) {
    words.insert(words.begin(), "config");
    return run_program(words, gateway_.variables());
  }

  test::TemporaryFolder folder_;
  FakeGateway gateway_;
};

TEST_F(ConfigTest, ShowsTheConfiguration) {
  gateway_.answers["/api/config"] = {200, R"({"http_addr":":8443","auth_token":"[redacted:0011]"})"};
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{}, {"show"}, {"show", "-o", "json"}}) {
    EXPECT_EQ(run(words).out, "{\n  \"http_addr\": \":8443\",\n  \"auth_token\": \"[redacted:0011]\"\n}\n");
    EXPECT_EQ(gateway_.requests.size(), 1U);
    gateway_.requests.clear();
  }
}

TEST_F(ConfigTest, AppliesAFileAsItIsAndSaysWhatChanged) {
  gateway_.answers["/api/config"] = {
      200, R"({"success":true,"changed":["http_addr","risk_tiers"],"restart_required":["http_addr"],"config":{}})"};
  std::string text = "{ \"http_addr\": \":8443\" }\n";
  ProgramRun applied = run({"apply", folder_.write("c.json", text)});
  EXPECT_EQ(applied.exit_code, 0) << applied.error;
  EXPECT_EQ(applied.out, "applied; changed: http_addr, risk_tiers\ntakes effect at the next start: http_addr\n");
  EXPECT_EQ(gateway_.last_body(), text);
  EXPECT_THAT(run({"apply", folder_.write("c.json", text), "-o", "json"}).out, HasSubstr("\"success\": true"));
  gateway_.answers["/api/config"] = {200, R"({"success":true,"changed":[],"restart_required":[]})"};
  EXPECT_EQ(run({"apply", folder_.write("c.json", text)}).out, "applied; nothing changed\n");
}

TEST_F(ConfigTest, EveryProblemOfARefusedOneIsPrinted) {
  gateway_.answers["/api/config"] = {
      400, R"({"title":"t","code":"invalid_configuration","detail":"a: wrong\nb: wrong\u001b"})"};
  ProgramRun refused = run({"apply", folder_.write("c.json", "{}")});
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.error, AllOf(HasSubstr("was not applied:\na: wrong\nb: wrong\\x1b\n"), Not(HasSubstr("\x1b"))));
}

TEST_F(ConfigTest, ALongListOfProblemsIsNotCut) {
  std::string problems = "a: wrong; " + std::string(2000, 'b') + ": wrong; last: wrong";
  gateway_.answers["/api/config"] = {400, R"({"code":"invalid_config","detail":")" + problems + "\"}"};
  EXPECT_THAT(run({"apply", folder_.write("c.json", "{}")}).error, HasSubstr(problems));
}

TEST_F(ConfigTest, WhatIsNoConfigurationIsNotSent) {
  for (const char* text : {"", "[]", "{", "{\"auth_token\":\"secret-of-mine\""}) {
    ProgramRun refused = run({"apply", folder_.write("c.json", text)});
    EXPECT_EQ(refused.exit_code, 2) << text;
    EXPECT_THAT(refused.error, AllOf(HasSubstr("c.json"), Not(HasSubstr("secret-of-mine"))));
  }
  EXPECT_EQ(run({"apply", folder_.path() + "/missing"}).exit_code, 2);
  EXPECT_EQ(run({"apply"}).exit_code, 2);
  EXPECT_THAT(gateway_.requests, IsEmpty());
}

}  // namespace
}  // namespace hive::cli
