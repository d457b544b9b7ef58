#include "cli/policy_test.h"

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

constexpr const char* configuration = R"({
  "listen_addr": ":2222",
  "host_key_path": "host_key",
  "authorized_keys_path": "authorized_keys",
  "http_addr": "127.0.0.1:8443",
  "audit_log_path": "audit.log",
  "auth_token": "env:NOT_SET_ANYWHERE_HERE",
  "tokens": {
    "sha256:00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff": {"role": "operator", "identity": "alice"},
    "vault:secret/data/hive#reader": "read-only"
  },
  "scoped_tokens": [
    {"token": "file:/nowhere/token", "role": "operator", "identity": "bob", "agents": ["edge-1"], "tools": ["get_*", "run_command"]},
    {"token": "env:OLD_TOKEN_OF_A_TEST", "role": "operator", "identity": "carol", "agents": ["*"], "tools": ["*"],
     "expires_at": "2020-01-01T00:00:00Z"}
  ],
  "risk_tiers": {"run_command:systemctl": "admin"},
  "require_approval_tiers": ["admin"]
})";

constexpr const char* cases = R"(# who may do what
as role=operator identity=alice
edge-1__run_command name=systemctl args=restart args=nginx -> ask approval_required tier=admin
edge-1__run_command name=uptime                            -> allow tier=write
as role=read-only
edge-1__run_command name=uptime                            -> deny role
as role=operator agents=edge-1
edge-2__get_metrics                                        -> deny scope
as token=alice
edge-2__get_metrics                                        -> allow
as token=tokens[1]
edge-2__run_command name=uptime                            -> deny role
as token=scoped_tokens[0]
edge-1__get_metrics                                        -> allow
edge-2__get_metrics                                        -> deny scope
edge-1__read_logs                                          -> deny scope
edge-1__run_command name=systemctl                         -> ask
as token=carol
edge-1__get_metrics                                        -> deny expired_token
as token=auth_token
edge-2__run_command name=uptime                            -> allow
)";

class PolicyTest : public testing::Test {
 protected:
  ProgramRun run(std::vector<std::string> words) {
    words.insert(words.begin(), {"policy", "test"});
    return run_program(words, gateway_.variables());
  }
  ProgramRun run_offline(const std::string& text, std::vector<std::string> more = {}) {
    std::vector<std::string> words = {folder_.write("access.test", text), "--config",
                                      folder_.write("gateway.json", configuration)};
    words.insert(words.end(), more.begin(), more.end());
    return run(words);
  }

  test::TemporaryFolder folder_;
  FakeGateway gateway_;
};

TEST_F(PolicyTest, DecidesByAConfigurationWithoutGatewayAndSecrets) {
  ProgramRun tested = run_offline(cases);
  EXPECT_EQ(tested.exit_code, 0) << tested.out << tested.error;
  EXPECT_EQ(tested.out, "12 cases, 0 failed\n");
  EXPECT_THAT(gateway_.requests, IsEmpty());
}

TEST_F(PolicyTest, AFailureNamesTheLineTheDecisionAndTheRule) {
  ProgramRun tested =
      run_offline("as role=operator identity=alice\ne__run_command name=systemctl -> allow\ne__get_metrics -> allow\n");
  EXPECT_EQ(tested.exit_code, 1);
  EXPECT_THAT(tested.out,
              AllOf(HasSubstr("FAIL " + folder_.path() + "/access.test:2: e__run_command name=systemctl -> allow\n"),
                    HasSubstr("     as role=operator identity=alice\n"),
                    HasSubstr("     got ask approval_required tier=admin\n"), HasSubstr("require_approval_tiers"),
                    HasSubstr("run_command:systemctl"), HasSubstr("2 cases, 1 failed\n"), Not(HasSubstr("test:3"))));
}

TEST_F(PolicyTest, AnotherReasonOrTierIsAFailure) {
  EXPECT_EQ(run_offline("as role=read-only\ne__run_command name=df -> deny scope\n").exit_code, 1);
  EXPECT_EQ(run_offline("as role=admin\ne__run_command name=df -> allow tier=read\n").exit_code, 1);
  EXPECT_EQ(run_offline("as role=admin\ne__run_command name=df -> deny\n").exit_code, 1);
}

TEST_F(PolicyTest, VerboseShowsWhatPassesAndJsonAll) {
  EXPECT_THAT(run_offline("as role=admin\ne__get_metrics -> allow\n", {"-v"}).out,
              HasSubstr("test:2: e__get_metrics -> allow\n"));
  EXPECT_THAT(run_offline("as role=admin\ne__get_metrics -> allow\n", {"-o", "json"}).out,
              AllOf(HasSubstr("\"passed\": true"), HasSubstr("\"total\": 1"), HasSubstr("\"failed\": 0")));
}

TEST_F(PolicyTest, WhatCannotBeRecordedIsDenied) {
  std::string config =
      folder_.write("no_log.json", R"({"listen_addr":":2222","host_key_path":"k","authorized_keys_path":"a",)"
                                   R"("http_addr":"127.0.0.1:1","auth_token":"env:NOT_SET_HERE"})");
  std::string file =
      folder_.write("t", "as role=admin\ne__run_command name=df -> deny audit_unavailable\ne__get_metrics -> allow\n");
  ProgramRun tested = run({file, "--config", config});
  EXPECT_EQ(tested.exit_code, 0) << tested.out << tested.error;
}

TEST_F(PolicyTest, ProblemsOfFilesAreErrors) {
  struct Case {
    const char* text;
    const char* message;
  };
  for (const Case& each : {Case{"", "no case in it"}, Case{"# nothing\nas role=admin\n", "no case in it"},
                           Case{"e__t -> allow\n", "access.test:1: no \"as\" line"},
                           Case{"as token=nobody\ne__t -> allow\n", "access.test:2: "},
                           Case{"as\n", "access.test:1: as"}, Case{"\x1b[2J -> allow\n", "\\x1b[2J"}}) {
    ProgramRun tested = run_offline(each.text);
    EXPECT_EQ(tested.exit_code, 1) << each.text;
    EXPECT_THAT(tested.error, AllOf(HasSubstr(each.message), Not(HasSubstr("\x1b")))) << each.text;
  }
  EXPECT_EQ(run({folder_.path() + "/missing"}).exit_code, 1);
  std::string file = folder_.write("t", "as role=admin\ne__t -> allow\n");
  ProgramRun tested = run({file, "--config", folder_.write("bad.json", R"({"nonsense":1})")});
  EXPECT_EQ(tested.exit_code, 1);
  EXPECT_THAT(tested.error, HasSubstr("nonsense"));
}

TEST_F(PolicyTest, AsksTheGatewayWhereThereIsNoConfiguration) {
  gateway_.answers["/api/explain"] = {
      200,
      R"({"verdict":"deny","reason":"scope","tier":"read","gates":[{"gate":"scope","verdict":"deny","reason":"scope",)"
      R"("message":"m","rule":"gateway.json:3: x\u001b"}]})"};
  std::string file =
      folder_.write("t", "e__t -> deny scope\nas role=operator agents=x\ne__t a=1 -> deny\ne__t -> allow\n");
  ProgramRun tested = run({file});
  EXPECT_EQ(tested.exit_code, 1);
  EXPECT_THAT(tested.out, AllOf(HasSubstr("by scope: gateway.json:3: x\\x1b\n"), HasSubstr("3 cases, 1 failed")));
  ASSERT_EQ(gateway_.requests.size(), 3U);
  EXPECT_THAT(gateway_.requests[0], HasSubstr("\r\n\r\n{\"name\":\"e__t\",\"arguments\":{}}"));
  EXPECT_THAT(gateway_.requests[1],
              HasSubstr(R"({"name":"e__t","arguments":{"a":1},"as":{"role":"operator","agents":["x"]}})"));
}

TEST_F(PolicyTest, AGatewayCannotBeAskedForACredential) {
  ProgramRun tested = run({folder_.write("t", "as token=tokens[0]\ne__t -> allow\n")});
  EXPECT_EQ(tested.exit_code, 1);
  EXPECT_THAT(tested.error, HasSubstr("--config"));
  EXPECT_THAT(gateway_.requests, IsEmpty());
}

TEST_F(PolicyTest, AGatewayThatDoesNotAnswerEndsTheTest) {
  std::string file = folder_.write("t", "e__t -> allow\n");
  ProgramRun tested =
      run_program({"policy", "test", file}, {{"MYRMEX_URL", "http://127.0.0.1:1"}, {"MYRMEX_TOKEN", "t"}});
  EXPECT_EQ(tested.exit_code, 5);
}

}  // namespace
}  // namespace hive::cli
