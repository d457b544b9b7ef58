#include "priv/server.h"

#include <array>
#include <condition_variable>
#include <csignal>
#include <filesystem>
#include <thread>

#include <gmock/gmock.h>
#include <grp.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "host_tree.h"
#include "priv/peer.h"

namespace hive::priv {
namespace {

namespace fs = std::filesystem;
using ::testing::EndsWith;
using ::testing::HasSubstr;

UniqueFd connect_to(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) return {};
  return socket;
}

// Everything until the server closes.
std::string read_to_end(int socket) {
  std::string text;
  std::array<char, 4096> buffer;
  while (true) {
    ssize_t count = ::read(socket, buffer.data(), buffer.size());
    if (count <= 0) return text;
    text.append(buffer.data(), static_cast<size_t>(count));
  }
}

void send_text(int socket, std::string_view text) {
  while (!text.empty()) {
    ssize_t count = ::send(socket, text.data(), text.size(), MSG_NOSIGNAL);
    if (count <= 0) return;
    text.remove_prefix(static_cast<size_t>(count));
  }
}

class ServerTest : public HostTree {
 protected:
  void TearDown() override {
    stop();
    HostTree::TearDown();
  }

  void start(ServerLimits limits = {}) {
    path_ = (folder_ / "priv.sock").string();
    auto listener = listen_at(path_);
    ASSERT_TRUE(listener.has_value()) << listener.error().message;
    desk_.emplace(layout_, settings_, hooks_, journal_);
    server_.emplace(*std::move(listener), *desk_, settings_, limits, stopping_);
    thread_ = std::thread([this] { ended_ = server_->run(); });
  }
  void stop() {
    if (!thread_.joinable()) return;
    server_->stop();
    thread_.join();
    EXPECT_TRUE(ended_.has_value());
  }

  std::string ask(std::string_view text, bool half_close = true) {
    UniqueFd socket = connect_to(path_);
    send_text(socket.get(), text);
    if (half_close) ::shutdown(socket.get(), SHUT_WR);
    return read_to_end(socket.get());
  }

  std::string path_;
  std::optional<Desk> desk_;
  std::optional<Server> server_;
  std::thread thread_;
  Result<void> ended_;
};

TEST_F(ServerTest, S06_S08_S09_AnswersAClientThatHasClosedItsHalf) {
  start();
  EXPECT_THAT(ask("{\"op\":\"ping\"}\n"), HasSubstr(R"({"ok":true,)"));
  EXPECT_THAT(ask("{\"op\":\"ping\"}\n", false), EndsWith("}}\n"));
}

TEST_F(ServerTest, S10_AFailureHasALineToo) {
  start();
  EXPECT_THAT(ask("{\"op\":\"stop\",\"container\":\"h-eve\"}\n"), HasSubstr(R"("code":"no_such_container")"));
}

TEST_F(ServerTest, C11_LongAndUnfinishedRequestsAreRefused) {
  start({.request_time = std::chrono::minutes(5)});
  EXPECT_THAT(ask("{\"op\":\"ping\"}"), HasSubstr("no line end"));
  EXPECT_THAT(ask(std::string(max_request_bytes + 1, ' ') + "\n"), HasSubstr("longer than"));
  EXPECT_THAT(ask("{\"op\":\"ping\"}\n{\"op\":\"ping\"}\n"), HasSubstr("something follows"));
  EXPECT_EQ(journal_.entries().size(), 3U);
}

TEST_F(ServerTest, C11_SlowRequestsAreRefused) {
  start({.request_time = std::chrono::milliseconds(100)});
  EXPECT_THAT(ask("{\"op\":\"pi", false), HasSubstr("in time"));
  EXPECT_THAT(ask("", false), HasSubstr("in time"));
}

TEST_F(ServerTest, C12_OneConnectionTooManyIsToldSo) {
  start({.max_connections = 2, .request_time = std::chrono::seconds(60)});
  UniqueFd first = connect_to(path_);
  UniqueFd second = connect_to(path_);
  UniqueFd third = connect_to(path_);
  EXPECT_THAT(read_to_end(third.get()), HasSubstr(R"("code":"busy")"));
  send_text(first.get(), "{\"op\":\"ping\"}\n");
  EXPECT_THAT(read_to_end(first.get()), HasSubstr(R"("ok":true)"));
}

TEST_F(ServerTest, C16_ARequestWhoseCallerLeavesIsFinished) {
  make_persistent_root();
  start();
  {
    UniqueFd socket = connect_to(path_);
    send_text(socket.get(),
              "{\"op\":\"write_nspawn_flags\",\"container\":\"h-iris\",\"binds\":[],\"isolation\":{\"bridge\":"
              "\"hive0\",\"gateway_ip\":\"10.42.0.1\"}}\n");
  }
  // The entry is written when the request has ended; nobody is there to read the answer.
  auto limit = system_clock().steady_now() + std::chrono::minutes(2);
  while (journal_.entries().empty() && system_clock().steady_now() < limit)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  ASSERT_EQ(journal_.entries().size(), 1U);
  EXPECT_EQ(journal_.entries()[0].result, "ok");
  EXPECT_THAT(conf(), HasSubstr("--ephemeral"));
  EXPECT_EQ(salvages().size(), 1U);
  EXPECT_EQ(old_roots().size(), 1U);
}

TEST_F(ServerTest, AStopEndsOrTakesBackWhatIsUnderWay) {
  make_persistent_root();
  start();
  UniqueFd socket = connect_to(path_);
  send_text(socket.get(),
            "{\"op\":\"write_nspawn_flags\",\"container\":\"h-iris\",\"binds\":[],\"isolation\":{\"bridge\":\"hive0\","
            "\"gateway_ip\":\"10.42.0.1\"}}\n");
  stop();
  bool switched = conf().find("--ephemeral") != std::string::npos;
  EXPECT_EQ(salvages().size(), switched ? 1U : 0U);
  EXPECT_EQ(old_roots().size(), switched ? 1U : 0U);
  EXPECT_EQ(names_in(agent()), (std::vector<std::string>{"claude", "harness", "state", "work"}));
}

TEST_F(ServerTest, ItEndsByItselfWhenNobodyComes) {
  start({.idle_exit = std::chrono::milliseconds(50)});
  thread_.join();
  EXPECT_TRUE(ended_.has_value());
}

TEST_F(ServerTest, S11_C02_Q17_RootAndTheGroupMayAskAndOthersNot) {
  settings_.peer_groups = {"1500"};
  settings_.peer_users = {"1600"};
  start();
  fs::permissions(folder_, fs::perms(0755));
  fs::permissions(path_, fs::perms(0666));
  // Asks from a process of that user; its exit status says what came.
  auto answer_for = [&](uid_t uid, gid_t group) {
    pid_t child = ::fork();
    if (child == 0) {
      std::array<gid_t, 1> groups = {group};
      if (::setgroups(groups.size(), groups.data()) != 0 || ::setgid(uid) != 0 || ::setuid(uid) != 0) ::_exit(9);
      std::string answer = ask("{\"op\":\"ping\"}\n");
      ::_exit(answer.find("\"ok\":true") != std::string::npos ? 0 : answer.find("denied") != std::string::npos ? 1 : 2);
    }
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  };
  EXPECT_THAT(ask("{\"op\":\"ping\"}\n"), HasSubstr("\"ok\":true"));
  EXPECT_EQ(answer_for(1700, 1500), 0) << "a member of the group";
  EXPECT_EQ(answer_for(1600, 1600), 0) << "a named user";
  EXPECT_EQ(answer_for(1700, 1700), 1) << "somebody else";
  EXPECT_THAT(journal_.entries().back().message, HasSubstr("uid 1700"));
}

TEST(PeerTest, C02_P20_ProcessesOfContainersAreTold) {
  for (std::string_view inside : {"0::/machine.slice/container@h-iris.service/payload/init.scope\n",
                                  "12:cpu:/user.slice\n0::/machine.slice/machine-x.scope\n", "0::/../machine.slice/x\n",
                                  "0::/hive.slice/container@h-a.service/payload\n",
                                  "0::/system.slice/systemd-nspawn@x.service/payload/system.slice/y.service\n"}) {
    EXPECT_TRUE(is_in_machine(inside)) << inside;
  }
  for (std::string_view outside : {"0::/system.slice/hive-c0re.service\n", "0::/\n", "", "0::/../../..\n",
                                   "0::/user.slice/user-0.slice/session-1.scope\n", "0::/mymachine.slice/x\n"}) {
    EXPECT_FALSE(is_in_machine(outside)) << outside;
  }
}

}  // namespace
}  // namespace hive::priv
