/// Peers that are not ours: stock OpenSSH, and Go's SSH library as the agents of the Go product use it.

#include <cstdlib>
#include <filesystem>

#include <gmock/gmock.h>

#include "net/ssh/process.h"
#include "net/ssh/ssh_fixture.h"

namespace hive::net::ssh {
namespace {

using testing::AnyOf;
using testing::HasSubstr;
using testing::Not;

/// Skips, or fails where every tool must be there.
#define NEED(path, package)                                                                              \
  do {                                                                                                   \
    if (std::string_view(path).empty() || !std::filesystem::exists(path)) {                              \
      if (std::getenv("HIVE_REQUIRE_ALL") != nullptr) FAIL() << "missing: install the package " package; \
      GTEST_SKIP() << "missing: install the package " package;                                           \
    }                                                                                                    \
  } while (false)

#ifdef HIVE_GO_AGENT
constexpr std::string_view go_agent = HIVE_GO_AGENT;
constexpr std::string_view hostile_agent = HIVE_HOSTILE_AGENT;
#else
constexpr std::string_view go_agent;
constexpr std::string_view hostile_agent;
#endif

class ForeignClientTest : public SshFixture {
 protected:
  std::vector<std::string> openssh(const std::vector<std::string>& before, const std::vector<std::string>& after) {
    std::vector<std::string> command = {"/usr/bin/ssh",
                                        "-F",
                                        "none",
                                        "-i",
                                        folder.path("agent"),
                                        "-p",
                                        std::to_string(server->port()),
                                        "-o",
                                        "StrictHostKeyChecking=no",
                                        "-o",
                                        "UserKnownHostsFile=/dev/null",
                                        "-o",
                                        "IdentitiesOnly=yes",
                                        "-o",
                                        "IdentityAgent=none",
                                        "-o",
                                        "BatchMode=yes",
                                        "-o",
                                        "LogLevel=ERROR"};
    command.insert(command.end(), before.begin(), before.end());
    command.emplace_back("agent-1@127.0.0.1");
    command.insert(command.end(), after.begin(), after.end());
    return command;
  }
  std::vector<std::string> go(const std::string& mode, std::string_view program = go_agent) {
    return {std::string(program), mode, "127.0.0.1:" + std::to_string(server->port()), "agent-1", folder.path("agent")};
  }
  std::shared_ptr<RecordingHandler> handle(LineChannel& channel) {
    auto handler = std::make_shared<RecordingHandler>();
    on_worker(channel, [&] { channel.set_handler(handler); });
    return handler;
  }
};

TEST_F(ForeignClientTest, StockOpenSshStandsInForAnAgent) {
  NEED("/usr/bin/ssh", "openssh-client");
  start_server();
  Process ssh(openssh({"-s"}, {"mcp"}));
  auto channel = accepted->take();
  ASSERT_TRUE(channel);
  EXPECT_EQ(channel->peer().user, "agent-1");
  EXPECT_EQ(channel->peer().kind, ChannelKind::subsystem);
  EXPECT_THAT(channel->peer().software, HasSubstr("OpenSSH"));
  auto handler = handle(*channel);
  ssh.write("a line\nand ");
  EXPECT_EQ(handler->lines.take(), "a line");
  ssh.write("another\n");
  EXPECT_EQ(handler->lines.take(), "and another");
  ASSERT_TRUE(send(*channel, "an answer"));
  EXPECT_EQ(ssh.read_line(), "an answer");
  ssh.close_input();
  EXPECT_THAT(handler->closed.take().message, HasSubstr("closed the channel"));
}

TEST_F(ForeignClientTest, LinesThatComeWithTheLastPacketsBeforeTheEndAreDelivered) {
  NEED("/usr/bin/ssh", "openssh-client");
  start_server();
  Process ssh(openssh({"-s"}, {"mcp"}));
  ssh.write("one\ntwo\nthree\n");
  ssh.close_input();
  auto channel = accepted->take();
  ASSERT_TRUE(channel);
  auto handler = handle(*channel);
  EXPECT_EQ(handler->lines.take(), "one");
  EXPECT_EQ(handler->lines.take(), "two");
  EXPECT_EQ(handler->lines.take(), "three");
  handler->closed.take();
}

TEST_F(ForeignClientTest, NewKeysUnderTrafficDoNotStallIt) {
  NEED("/usr/bin/ssh", "openssh-client");
  start_server();
  Process ssh(openssh({"-s", "-o", "RekeyLimit=64K"}, {"mcp"}));
  auto channel = accepted->take();
  ASSERT_TRUE(channel);
  auto handler = std::make_shared<RecordingHandler>();
  handler->keep_lines = false;
  size_t received = 0;
  std::promise<void> all;
  constexpr size_t count = 2000;
  handler->respond = [&](std::string_view line) {
    ASSERT_TRUE(channel->send(line));
    if (++received == count) all.set_value();
  };
  on_worker(*channel, [&] { channel->set_handler(handler); });
  std::thread writer([&] {
    for (size_t i = 0; i < count; ++i)
      ssh.write(std::to_string(i) + std::string(1000, '.') + "\n");
  });
  for (size_t i = 0; i < count; ++i) {
    const auto line = ssh.read_line();
    ASSERT_TRUE(line) << "stalled at line " << i;
    ASSERT_TRUE(line->starts_with(std::to_string(i) + "."));
  }
  writer.join();
  EXPECT_EQ(all.get_future().wait_for(patience), std::future_status::ready);
}

TEST_F(ForeignClientTest, NewKeysAfterATimeDoNotEndIt) {
  NEED("/usr/bin/ssh", "openssh-client");
  start_server();
  // Every second, and told of in the client's log, which comes among its output.
  Process ssh(openssh({"-s", "-v", "-o", "RekeyLimit=default 1"}, {"mcp"}));
  auto channel = accepted->take();
  ASSERT_TRUE(channel);
  auto handler = std::make_shared<RecordingHandler>();
  handler->respond = [&](std::string_view line) { EXPECT_TRUE(channel->send(line)); };
  on_worker(*channel, [&] { channel->set_handler(handler); });
  // The client leaves out an exchange when nothing at all was said since the last one, so one line is said after each.
  int exchanges = 0;
  for (auto line = ssh.read_line(); line != "alive 4"; line = ssh.read_line()) {
    ASSERT_TRUE(line) << "after " << exchanges << " exchanges";
    if (line->find("SSH2_MSG_NEWKEYS received") != std::string::npos) ssh.write(fmt::format("alive {}\n", ++exchanges));
  }
}

TEST_F(ForeignClientTest, CommandsShellsAndForwardingsOfOpenSshAreRefused) {
  NEED("/usr/bin/ssh", "openssh-client");
  start_server();
  Process command(openssh({}, {"id"}));
  EXPECT_THAT(command.read_all(), HasSubstr("exec request failed"));
  EXPECT_NE(command.wait(), 0);
  Process shell(openssh({"-T"}, {}));
  EXPECT_THAT(shell.read_all(), HasSubstr("shell request failed"));
  EXPECT_NE(shell.wait(), 0);
  Process forward(openssh({"-N", "-o", "ExitOnForwardFailure=yes", "-R", "0:127.0.0.1:1"}, {}));
  EXPECT_THAT(forward.read_all(), HasSubstr("forwarding failed"));
  EXPECT_NE(forward.wait(), 0);
  Process direct(openssh({"-W", "127.0.0.1:1"}, {}));
  EXPECT_THAT(direct.read_all(), HasSubstr("stdio forwarding failed"));
  EXPECT_NE(direct.wait(), 0);
  Process other(openssh({"-s"}, {"sftp"}));
  EXPECT_THAT(other.read_all(), HasSubstr("subsystem request failed"));
  EXPECT_EQ(accepted->size(), 0U);
}

TEST_F(ForeignClientTest, AGoAgentsChannelOfTypeMcpIsAccepted) {
  NEED(go_agent, "golang-golang-x-crypto-dev");
  start_server();
  Process agent(go("echo"));
  auto channel = accepted->take();
  ASSERT_TRUE(channel) << agent.read_all();
  EXPECT_EQ(channel->peer().kind, ChannelKind::direct);
  auto handler = handle(*channel);
  const std::string large(100'000, 'x');
  ASSERT_TRUE(send(*channel, "hello"));
  ASSERT_TRUE(send(*channel, large));
  EXPECT_EQ(handler->lines.take(), "hello");
  EXPECT_EQ(handler->lines.take(), large);
}

TEST_F(ForeignClientTest, EverythingElseIsRefusedAndTheChannelLivesOn) {
  NEED(go_agent, "golang-golang-x-crypto-dev");
  start_server();
  Process agent(go("refused"));
  auto channel = accepted->take();
  ASSERT_TRUE(channel) << agent.read_all();
  auto handler = std::make_shared<RecordingHandler>();
  handler->respond = [&](std::string_view line) { EXPECT_TRUE(channel->send(line)); };
  on_worker(*channel, [&] { channel->set_handler(handler); });
  EXPECT_EQ(agent.read_all(),
            "global tcpip-forward: false <nil>\n"
            "global streamlocal-forward: false <nil>\n"
            "open x11: refused\n"
            "open direct-streamlocal@openssh.com: refused\n"
            "open auth-agent@openssh.com: refused\n"
            "open tun@openssh.com: refused\n"
            "open mc: refused\n"
            "open mcpx: refused\n"
            "open mcp channel: refused\n"
            "open MCP: refused\n"
            "open : refused\n"
            "dial: refused\n"
            "request exec: false\n"
            "request shell: false\n"
            "request env: false\n"
            "request pty-req: false\n"
            "request x11-req: false\n"
            "request auth-agent-req@openssh.com: false\n"
            "request subsystem: false\n"
            "request subsystem: false\n"
            "open session: refused\n"
            "open mcp: refused\n"
            "request subsystem: true\n"
            "request subsystem: false\n"
            "request exec: false\n"
            "open session: refused\n"
            "open mcp: refused\n"
            "global tcpip-forward: false <nil>\n"
            "global keepalive@openssh.com: answered\n"
            "global unheard-of@example.com: answered\n"
            "request keepalive@openssh.com: false\n"
            "echo: still alive <nil>\n");
  EXPECT_EQ(agent.wait(), 0);
}

TEST_F(ForeignClientTest, APeerKilledInTheMiddleIsNoticedAndOthersGoOn) {
  NEED(go_agent, "golang-golang-x-crypto-dev");
  start_server();
  for (int round = 0; round < 10; ++round) {
    Process agent(go("flood"));
    auto channel = accepted->take();
    ASSERT_TRUE(channel) << agent.read_all();
    auto handler = std::make_shared<RecordingHandler>();
    handler->respond = [&](std::string_view) { (void)channel->send(std::string(2000, 'y')); };
    on_worker(*channel, [&] { channel->set_handler(handler); });
    ASSERT_TRUE(handler->lines.wait_for_size(200));
    agent.kill();
    handler->closed.take();
    on_worker(*channel, [&] { EXPECT_FALSE(channel->is_open()); });
    EXPECT_EQ(handler->closed.size(), 0U) << "told twice";
  }
  EXPECT_TRUE(connect_pair().server);
}

TEST_F(ForeignClientTest, APeerThatAnnouncesTinyPacketsIsRefused) {
  NEED(hostile_agent, "golang-golang-x-crypto-dev");
  start_server();
  Process agent(go("echo", hostile_agent));
  EXPECT_THAT(refusals->take().reason, HasSubstr("announces packets of 10 bytes"));
  EXPECT_EQ(accepted->size(), 0U);
}

TEST_F(ForeignClientTest, SshAuditFindsNothingToFail) {
  NEED("/usr/bin/ssh-audit", "ssh-audit");
  start_server();
  Process audit({"/usr/bin/ssh-audit", "--no-colors", "-p", std::to_string(server->port()), "127.0.0.1"});
  const std::string report = audit.read_all();
  EXPECT_THAT(report, HasSubstr("(kex) curve25519-sha256 "));
  EXPECT_THAT(report, HasSubstr("kex-strict-s-v00@openssh.com"));
  EXPECT_THAT(report, HasSubstr("SSH-2.0-MyrmexHive"));
  EXPECT_THAT(report, Not(HasSubstr("[fail]"))) << report;
  EXPECT_THAT(report, Not(HasSubstr("zlib"))) << report;
}

}  // namespace
}  // namespace hive::net::ssh
