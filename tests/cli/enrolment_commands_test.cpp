#include <gmock/gmock.h>

#include "cli/program_run.h"
#include "crypto/ssh_key.h"

namespace hive::cli {
namespace {

using test::FakeGateway;
using test::run_program;
using test::TemporaryFolder;
using test::Variables;
using testing::HasSubstr;
using testing::Not;

const std::string join_token(64, 'a');

class EnrolmentCommandsTest : public testing::Test {
 protected:
  EnrolmentCommandsTest() {
    gateway_.answers["/api/enroll/token"] = {
        200, R"({"join_token":")" + join_token + R"(","agent_id":"edge-1","expires_at":"2026-11-30T17:00:00.000Z"})"};
  }

  Variables without_token() const { return {{"MYRMEX_URL", gateway_.url()}}; }
  std::vector<std::string> bootstrap() const {
    return {"bootstrap",
            "--agent-id",
            "edge-1",
            "--key-out",
            folder_.path() + "/key",
            "--config-out",
            folder_.path() + "/agent.json"};
  }
  std::size_t count_files() const {
    std::filesystem::directory_iterator files(folder_.path());
    return static_cast<std::size_t>(std::distance(begin(files), end(files)));
  }

  FakeGateway gateway_;
  TemporaryFolder folder_;
};

TEST_F(EnrolmentCommandsTest, EnrollTokenPrintsTheTokenAloneOnStandardOutput) {
  auto run = run_program({"enroll-token", "--agent-id", "edge-1", "--ttl", "60"}, gateway_.variables());
  EXPECT_EQ(run.exit_code, 0) << run.error;
  EXPECT_EQ(run.out, join_token + "\n");
  EXPECT_THAT(run.error, HasSubstr("2026-11-30T17:00:00.000Z"));
  EXPECT_EQ(gateway_.last_body(), R"({"agent_id":"edge-1","ttl_seconds":60})");
}

TEST_F(EnrolmentCommandsTest, ReservedIdsAreRefusedBeforeAnythingIsSent) {
  for (const char* id : {"gateway", "a__b", "-x", "a b"}) {
    EXPECT_EQ(run_program({"enroll-token", std::string("--agent-id=") + id}, gateway_.variables()).exit_code, 2) << id;
    EXPECT_EQ(run_program({"agents", "revoke", "--yes", "--", id}, gateway_.variables()).exit_code, 2) << id;
  }
  EXPECT_TRUE(gateway_.requests.empty());
}

TEST_F(EnrolmentCommandsTest, AFailedBootstrapLeavesNothing) {
  gateway_.answers["/api/enroll"] = {403, R"({"status":403,"code":"join_token","detail":"the join token does not"})"};
  Variables variables = without_token();
  variables["MYRMEX_JOIN_TOKEN"] = join_token;
  auto run = run_program(bootstrap(), variables);
  EXPECT_EQ(run.exit_code, 3) << run.error;
  EXPECT_EQ(count_files(), 0U);
  EXPECT_THAT(gateway_.requests.back(), Not(HasSubstr("Authorization")));
}

TEST_F(EnrolmentCommandsTest, AGatewayThatEnrolsAnotherKeyIsNotBelieved) {
  gateway_.answers["/api/enroll"] = {
      200, R"({"success":true,"agent_id":"edge-1","fingerprint":"SHA256:other","gateway_host_key":""})"};
  Variables variables = without_token();
  variables["MYRMEX_JOIN_TOKEN"] = join_token;
  EXPECT_EQ(run_program(bootstrap(), variables).exit_code, 1);
  EXPECT_EQ(count_files(), 0U);
}

TEST_F(EnrolmentCommandsTest, AHostKeyThatIsNoneIsNotWrittenIntoAConfiguration) {
  gateway_.answers["/api/enroll"] = {200,
                                     R"({"success":true,"agent_id":"edge-1","gateway_host_key":"ssh-ed25519 \"x"})"};
  Variables variables = without_token();
  variables["MYRMEX_JOIN_TOKEN"] = join_token;
  EXPECT_EQ(run_program(bootstrap(), variables).exit_code, 1);
  EXPECT_EQ(count_files(), 0U);
}

TEST_F(EnrolmentCommandsTest, BootstrapWithAnAdminsTokenMakesItsJoinTokenAndWritesAllThree) {
  std::string host_key = crypto::PrivateKey::generate("gw")->public_key().to_line();
  gateway_.answers["/api/enroll"] = {
      200, R"({"success":true,"agent_id":"edge-1","gateway_host_key":")" + host_key + R"("})"};
  auto run = run_program(bootstrap(), gateway_.variables());
  EXPECT_EQ(run.exit_code, 0) << run.error;
  EXPECT_EQ(count_files(), 3U);
  auto key = crypto::PrivateKey::load(folder_.path() + "/key");
  ASSERT_TRUE(key) << key.error().message;
  EXPECT_EQ(key->public_key().comment(), "edge-1");
  std::string config = *read_file(folder_.path() + "/agent.json", 4096, FileSecrecy::owner_only);
  EXPECT_THAT(config, HasSubstr("\"gateway_host_key\": \"" + host_key + "\""));
  EXPECT_THAT(config, HasSubstr("\"gateway_addr\": \"127.0.0.1:2222\""));
  EXPECT_THAT(run.out + run.error, Not(HasSubstr(join_token)));
  auto again = run_program(bootstrap(), gateway_.variables());
  EXPECT_EQ(again.exit_code, 1);
  EXPECT_EQ(count_files(), 3U);
}

TEST_F(EnrolmentCommandsTest, WithoutAnyTokenBootstrapSaysHowToGetOne) {
  auto run = run_program(bootstrap(), without_token());
  EXPECT_EQ(run.exit_code, 7);
  EXPECT_THAT(run.error, HasSubstr("myrmex enroll-token --agent-id edge-1"));
  EXPECT_EQ(count_files(), 0U);
}

TEST_F(EnrolmentCommandsTest, AJoinTokenFileThatOthersCanReadIsRefused) {
  std::string file = folder_.write("token", join_token, 0644);
  std::string key = folder_.write("key.pub", crypto::PrivateKey::generate("x")->public_key().to_line());
  auto run = run_program({"enroll", "--agent-id", "edge-1", "--public-key-file", key, "--join-token-file", file},
                         without_token());
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_THAT(run.error, HasSubstr("chmod 600"));
}

TEST_F(EnrolmentCommandsTest, NothingIsRevokedUnasked) {
  auto run = run_program({"agents", "revoke", "edge-1"}, gateway_.variables());
  if (::isatty(STDIN_FILENO) == 0) {
    EXPECT_EQ(run.exit_code, 2);
    EXPECT_THAT(run.error, HasSubstr("--yes"));
    EXPECT_TRUE(gateway_.requests.empty());
  }
  gateway_.answers["/api/agents/revoke"] = {
      200, R"({"revoked":true,"keys_removed":1,"session_dropped":true,"join_tokens_revoked":2})"};
  run = run_program({"agents", "revoke", "edge-1", "--key", "SHA256:x", "--yes"}, gateway_.variables());
  EXPECT_EQ(run.exit_code, 0) << run.error;
  EXPECT_EQ(run.out, "Agent edge-1: 1 key removed, session ended, 2 open join tokens killed.\n");
  EXPECT_EQ(gateway_.last_body(), R"({"agent_id":"edge-1","key":"SHA256:x"})");
}

TEST_F(EnrolmentCommandsTest, RotationStopsBeforeItAsksForAnythingWhenItCannotWork) {
  std::string key = folder_.write("key", crypto::PrivateKey::generate("edge-1")->to_openssh());
  std::string config = folder_.write(
      "agent.json", R"({"agent_id":"edge-1","gateway_addr":"gw:2222","private_key_path":")" + key + R"("})");
  auto other = run_program({"rotate", "--config", config, "--agent-id", "edge-2"}, gateway_.variables());
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_THAT(other.error, HasSubstr("configuration of agent edge-1"));
  // This process is no agent, and must not be signalled.
  auto pid =
      run_program({"rotate", "--config", config, "--agent-pid", std::to_string(::getpid())}, gateway_.variables());
  EXPECT_EQ(pid.exit_code, 2);
  EXPECT_THAT(pid.error, HasSubstr("not myrmex-agent"));
  EXPECT_TRUE(gateway_.requests.empty());
}

TEST_F(EnrolmentCommandsTest, ARotationThatTheAgentDoesNotTakeUpKeepsBothKeys) {
  std::string old_text = crypto::PrivateKey::generate("edge-1")->to_openssh();
  std::string key = folder_.write("key", old_text);
  std::string config = folder_.write(
      "agent.json", R"({"agent_id":"edge-1","gateway_addr":"gw:2222","private_key_path":")" + key + R"("})");
  gateway_.answers["/api/enroll"] = {200, R"({"success":true,"agent_id":"edge-1","gateway_host_key":""})"};
  gateway_.answers["/api/fleet"] = {200, R"([{"id":"edge-1","online":true,"key_fingerprint":"SHA256:old"}])"};
  auto run = run_program({"rotate", "--config", config, "--wait", "1", "--revoke-old"}, gateway_.variables());
  EXPECT_EQ(run.exit_code, 5) << run.error;
  EXPECT_THAT(run.error, HasSubstr("both keys are enrolled"));
  EXPECT_EQ(*read_file(key + ".old", 4096), old_text);
  EXPECT_NE(*read_file(key, 4096, FileSecrecy::owner_only), old_text);
  for (const std::string& request : gateway_.requests)
    EXPECT_THAT(request, Not(HasSubstr("/api/agents/revoke")));
}

TEST_F(EnrolmentCommandsTest, AgentsAloneStillLists) {
  gateway_.answers["/api/status"] = {200,
                                     R"({"agents":[{"id":"edge-1","ip":"192.0.2.1","online":true}],"upstreams":[]})"};
  auto run = run_program({"agents"}, gateway_.variables());
  EXPECT_EQ(run.exit_code, 0) << run.error;
  EXPECT_THAT(run.out, HasSubstr("edge-1"));
}

TEST_F(EnrolmentCommandsTest, KeysShowsRefusedLinesAndCannotSteerTheTerminal) {
  gateway_.answers["/api/keys"] = {
      200,
      R"({"keys":"","entries":[{"line":1,"agent_id":"edge-1","fingerprint":"SHA256:f","from":["10.0.0.0/8"]},{"line":2,"refused":"bad \u001b[31m"}]})"};
  auto run = run_program({"keys"}, gateway_.variables());
  EXPECT_EQ(run.exit_code, 0) << run.error;
  EXPECT_THAT(run.out, HasSubstr("from 10.0.0.0/8"));
  EXPECT_THAT(run.out, HasSubstr("refused: bad"));
  EXPECT_THAT(run.out, Not(HasSubstr("\x1b[31m")));
}

}  // namespace
}  // namespace hive::cli
