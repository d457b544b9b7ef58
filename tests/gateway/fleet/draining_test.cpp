#include <boost/asio/io_context.hpp>
#include <gtest/gtest.h>

#include "gateway/calls/funnel_access.h"
#include "gateway/fleet/fleet.h"
#include "net/ssh/fake_line_channel.h"
#include "protocol/agent_protocol.h"

namespace hive::fleet {
namespace {

using calls::FunnelAccess;
using net::ssh::FakeLineChannel;

/// What happens to the sessions of an id that a newer connection replaces.
class DrainingTest : public ::testing::Test {
 protected:
  ~DrainingTest() override {
    fleet_->close("end of test");
    settle();
  }

  void settle() {
    worker_.context().restart();
    worker_.context().poll();
  }

  // Answers pings, and leaves calls to the test.
  std::shared_ptr<FakeLineChannel> connect(const std::string& key = "SHA256:first",
                                           const std::string& address = "192.0.2.1") {
    auto channel = std::make_shared<FakeLineChannel>(worker_, "edge-1");
    channel->set_key(key);
    channel->set_address(address);
    channel->on_send = [this, raw = channel.get()](const std::string& line) {
      auto request = protocol::parse_agent_request(line, {});
      if (!request || request->method != "ping") return;
      worker_.post([raw, answer = protocol::encode_result(request->id, "{}")] {
        if (raw->is_open()) raw->arrive(answer);
      });
    };
    fleet_->add(channel);
    settle();
    return channel;
  }

  struct Asked {
    std::uint64_t ticket = 0;
    std::shared_ptr<std::optional<AgentReply>> reply = std::make_shared<std::optional<AgentReply>>();
  };

  Asked call(const std::string& required_key = {}) {
    Asked asked;
    AgentRequest request;
    request.tool = "run_command";
    request.arguments = "{}";
    request.required_key = required_key;
    request.done = [reply = asked.reply](AgentReply answer) { *reply = std::move(answer); };
    asked.ticket = FunnelAccess::send(*fleet_, "edge-1", std::move(request));
    return asked;
  }

  void answer(FakeLineChannel& channel, const Asked& asked) {
    channel.arrive(protocol::encode_result(std::to_string(asked.ticket), "{}"));
    settle();
  }

  static bool has_sent(const FakeLineChannel& channel, const Asked& asked, std::string_view method = "tools/call") {
    for (const std::string& line : channel.sent()) {
      if (line.find(method) != std::string::npos && line.find(std::to_string(asked.ticket)) != std::string::npos) {
        return true;
      }
    }
    return false;
  }

  bool run_until(const std::function<bool()>& condition) {
    auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(5);
    while (!condition() && std::chrono::steady_clock::now() < deadline) {
      worker_.context().restart();
      worker_.context().run_one_for(std::chrono::milliseconds(20));
    }
    return condition();
  }

  ManualClock clock_;
  net::Worker worker_;
  std::vector<std::string> contested_;
  std::vector<std::string> offline_;
  std::string unwelcome_key_;
  std::unique_ptr<Fleet> fleet_ = Fleet::create(
      clock_, {.keepalive = std::chrono::milliseconds(40)},
      {.online = {},
       .offline = [this](const std::string& agent, const std::string&) { offline_.push_back(agent); },
       .contested = [this](const std::string&, const std::string& detail) { contested_.push_back(detail); },
       .admit = [this](const net::ssh::Peer& peer) -> Result<void> {
         if (peer.key_fingerprint != unwelcome_key_) return {};
         return fail(ErrorCode::permission_denied, "revoked");
       }});
};

TEST_F(DrainingTest, AReplacedSessionFinishesItsCallsAndClosesThen) {
  auto old_channel = connect();
  Asked before = call();
  settle();
  auto new_channel = connect("SHA256:second");
  EXPECT_TRUE(old_channel->is_open());
  auto status = fleet_->find("edge-1");
  ASSERT_TRUE(status);
  EXPECT_EQ(status->draining_sessions(), 1U);
  EXPECT_EQ(status->calls_in_flight(), 1U);
  EXPECT_EQ(status->key_fingerprint, "SHA256:second");

  Asked after = call();
  settle();
  EXPECT_TRUE(has_sent(*new_channel, after));
  EXPECT_FALSE(has_sent(*old_channel, after));

  answer(*old_channel, before);
  ASSERT_TRUE(before.reply->has_value());
  EXPECT_EQ((*before.reply)->kind, ReplyKind::result);
  EXPECT_EQ(old_channel->close_reason(), "replaced by a newer connection");
  EXPECT_EQ(fleet_->find("edge-1")->draining_sessions(), 0U);
  answer(*new_channel, after);
  EXPECT_EQ((*after.reply)->kind, ReplyKind::result);
  EXPECT_TRUE(offline_.empty());
}

TEST_F(DrainingTest, ACallThatWasOnItsWayToTheOldSessionGoesToTheNewOne) {
  auto old_channel = connect();
  Asked busy = call();
  settle();
  // Queued for the old session's worker when the new one arrives there.
  Asked crossing;
  worker_.post([&] {
    auto channel = std::make_shared<FakeLineChannel>(worker_, "edge-1");
    crossing = call();
    fleet_->add(channel);
  });
  settle();
  auto new_channel = connect("SHA256:second");
  Asked later = call();
  settle();
  EXPECT_TRUE(has_sent(*new_channel, later));
  EXPECT_TRUE(old_channel->is_open());
  EXPECT_FALSE(busy.reply->has_value());
}

TEST_F(DrainingTest, ACancellationFindsACallOnAReplacedSession) {
  auto old_channel = connect();
  Asked asked = call();
  settle();
  connect("SHA256:second");
  FunnelAccess::cancel(*fleet_, "edge-1", asked.ticket, "not wanted");
  settle();
  EXPECT_TRUE(has_sent(*old_channel, asked, "notifications/cancelled"));
}

TEST_F(DrainingTest, AReplacedSessionThatIsDeadIsGivenUpAndItsCallIsLost) {
  auto old_channel = connect();
  old_channel->on_send = nullptr;
  Asked asked = call();
  settle();
  connect("SHA256:second");
  clock_.advance(std::chrono::milliseconds(50));
  EXPECT_TRUE(run_until([&] { return asked.reply->has_value(); }));
  EXPECT_EQ((*asked.reply)->kind, ReplyKind::lost);
  EXPECT_FALSE(old_channel->is_open());
}

TEST_F(DrainingTest, SessionsCannotBeCollectedByReplacingThem) {
  std::vector<std::shared_ptr<FakeLineChannel>> channels;
  for (int i = 0; i < 8; ++i) {
    channels.push_back(connect());
    (void)call();
    settle();
  }
  EXPECT_EQ(fleet_->find("edge-1")->draining_sessions(), 4U);
  EXPECT_FALSE(channels[0]->is_open());
  EXPECT_TRUE(channels[7]->is_open());
}

TEST_F(DrainingTest, RevocationEndsReplacedSessionsToo) {
  auto old_channel = connect("SHA256:stolen");
  Asked asked = call();
  settle();
  auto new_channel = connect("SHA256:second");
  std::size_t ended = fleet_->disconnect_unless(
      [](const net::ssh::Peer& peer) { return peer.key_fingerprint != "SHA256:stolen"; }, "revoked");
  settle();
  EXPECT_EQ(ended, 1U);
  EXPECT_FALSE(old_channel->is_open());
  EXPECT_TRUE(new_channel->is_open());
  EXPECT_EQ((*asked.reply)->kind, ReplyKind::lost);
}

TEST_F(DrainingTest, AKeyThatWasRevokedAfterItAuthenticatedIsNotRegistered) {
  auto good = connect("SHA256:second");
  unwelcome_key_ = "SHA256:stolen";
  auto stolen = connect("SHA256:stolen");
  EXPECT_FALSE(stolen->is_open());
  EXPECT_TRUE(good->is_open());
  EXPECT_EQ(fleet_->find("edge-1")->key_fingerprint, "SHA256:second");
}

TEST_F(DrainingTest, ACallForOneKeyDoesNotReachAnAgentThatHasAnother) {
  auto channel = connect("SHA256:second");
  Asked asked = call("SHA256:first");
  settle();
  ASSERT_TRUE(asked.reply->has_value());
  EXPECT_EQ((*asked.reply)->kind, ReplyKind::not_sent);
  EXPECT_EQ((*asked.reply)->reason, "agent_key_changed");
  EXPECT_FALSE(has_sent(*channel, asked));
  Asked right = call("SHA256:second");
  settle();
  EXPECT_TRUE(has_sent(*channel, right));
}

TEST_F(DrainingTest, AnIdThatTwoMachinesFightOverIsToldOnceAMinute) {
  for (int i = 0; i < 20; ++i)
    connect("SHA256:first", i % 2 == 0 ? "192.0.2.1" : "192.0.2.2");
  EXPECT_EQ(contested_.size(), 1U);
  clock_.advance(std::chrono::seconds(61));
  for (int i = 0; i < 20; ++i)
    connect("SHA256:first", i % 2 == 0 ? "192.0.2.1" : "192.0.2.2");
  EXPECT_EQ(contested_.size(), 2U);
}

TEST_F(DrainingTest, OneMachineThatReconnectsOftenIsNoContest) {
  for (int i = 0; i < 20; ++i)
    connect();
  EXPECT_TRUE(contested_.empty());
}

}  // namespace
}  // namespace hive::fleet
