#include "gateway/upstreams/registry_fixture.h"

namespace hive::upstreams {
namespace {

using test::FakeServers;
using test::KeyedCaller;
using test::RegistryTest;
using test::Sent;

constexpr const char* can_be_asked = R"({"elicitation":{"form":{}},"roots":{"listChanged":true},"tasks":{},"x":1})";

class OwnSessionTest : public RegistryTest {
 protected:
  static std::shared_ptr<Caller> caller(std::string key, std::string capabilities = can_be_asked,
                                        std::optional<std::string> level = std::nullopt) {
    return std::make_shared<KeyedCaller>(std::move(key), std::move(capabilities), std::move(level));
  }
};

TEST_F(OwnSessionTest, IsOpenedForACallerWhomTheServerMayAsk) {
  start();
  ASSERT_TRUE(becomes("connected"));
  EXPECT_EQ(send(caller("alice")).reply().kind, ReplyKind::result);
  EXPECT_EQ(send(caller("alice")).reply().kind, ReplyKind::result);
  EXPECT_EQ(send(caller("bob")).reply().kind, ReplyKind::result);
  EXPECT_EQ(servers.opened(), 3U);
  EXPECT_EQ(servers.link(1)->options.capabilities, R"({"elicitation":{"form":{}},"roots":{}})");
  EXPECT_EQ(servers.link(1)->options.era, EraPreference::legacy);
  EXPECT_EQ(servers.last("tools/call")->link, servers.link(2));
  EXPECT_EQ(status().sessions, 3U);
}

TEST_F(OwnSessionTest, IsNotNeededByACallerWithoutCapabilities) {
  start();
  ASSERT_TRUE(becomes("connected"));
  EXPECT_EQ(send(caller("alice", R"({"experimental":{}})")).reply().kind, ReplyKind::result);
  EXPECT_EQ(send().reply().kind, ReplyKind::result);
  EXPECT_EQ(servers.opened(), 1U);
}

TEST_F(OwnSessionTest, IsNotNeededByAServerThatKeepsNoState) {
  servers.info.revision = mcp::Revision::v2026_07_28;
  start();
  ASSERT_TRUE(becomes("connected"));
  EXPECT_EQ(send(caller("alice")).reply().kind, ReplyKind::result);
  EXPECT_EQ(servers.opened(), 1U);
}

class BothErasTest : public OwnSessionTest {
 protected:
  BothErasTest() { servers.info.revision = mcp::Revision::v2026_07_28; }
  static std::shared_ptr<Caller> older_client(std::string key) {
    auto made = std::make_shared<KeyedCaller>(std::move(key), can_be_asked);
    made->has_session = true;
    return made;
  }
};

TEST_F(BothErasTest, SpeaksInASessionForAClientThatKeepsOneToo) {
  start();
  ASSERT_TRUE(becomes("connected"));
  EXPECT_EQ(send(older_client("alice")).reply().kind, ReplyKind::result);
  EXPECT_EQ(servers.opened(), 2U);
  EXPECT_EQ(servers.link(1)->options.era, EraPreference::legacy);
  EXPECT_EQ(servers.last("tools/call")->link, servers.link(1));
  EXPECT_EQ(send(caller("alice")).reply().kind, ReplyKind::result);
  EXPECT_EQ(servers.last("tools/call")->link, servers.link(0));
}

TEST_F(BothErasTest, GoesWithoutWhereTheServerOpensNoSession) {
  servers.refusal_of_own = Error{ErrorCode::invalid_argument, "no such method: initialize"};
  start();
  ASSERT_TRUE(becomes("connected"));
  EXPECT_EQ(send(older_client("alice")).reply().kind, ReplyKind::result);
  EXPECT_EQ(send(older_client("bob")).reply().kind, ReplyKind::result);
  EXPECT_EQ(servers.opened(), 2U) << "it is not tried again for every client";
  EXPECT_EQ(servers.last("tools/call")->link, servers.link(0));
}

TEST_F(BothErasTest, GoesWithoutWhenThereIsNoRoom) {
  tuning.max_sessions = 0;
  start();
  ASSERT_TRUE(becomes("connected"));
  EXPECT_EQ(send(older_client("alice")).reply().kind, ReplyKind::result);
  EXPECT_EQ(servers.opened(), 1U);
}

TEST_F(BothErasTest, StartsNoChildForIt) {
  config.upstreams = {upstream("git", "stdio")};
  start();
  ASSERT_TRUE(becomes("connected"));
  EXPECT_EQ(send(older_client("alice")).reply().kind, ReplyKind::result);
  EXPECT_EQ(servers.opened(), 1U);
}

TEST_F(OwnSessionTest, AsksForTheLogLevelThatItsCallerWants) {
  start();
  ASSERT_TRUE(becomes("connected"));
  EXPECT_EQ(send(caller("alice", "{}", "warning")).reply().kind, ReplyKind::result);
  EXPECT_EQ(servers.link(1)->options.log_level, "warning");
  EXPECT_EQ(servers.count("logging/setLevel"), 0U);
  EXPECT_EQ(send(caller("alice", "{}", "debug")).reply().kind, ReplyKind::result);
  EXPECT_EQ(servers.opened(), 2U);
  EXPECT_EQ(servers.last("logging/setLevel")->params, R"({"level":"debug"})");
  std::lock_guard lock(servers.mutex);
  EXPECT_EQ(servers.asked[servers.asked.size() - 2].method, "logging/setLevel");
}

TEST_F(OwnSessionTest, IsLimitedInNumberAndMakesRoomForAnotherWhenIdle) {
  tuning.max_sessions = 2;
  servers.holds_calls = true;
  start();
  ASSERT_TRUE(becomes("connected"));
  Sent alice = send(caller("alice"));
  Sent bob = send(caller("bob"));
  Reply refused = send(caller("carol")).reply();
  EXPECT_EQ(refused.kind, ReplyKind::not_sent);
  EXPECT_EQ(refused.reason, "upstream_busy");
  ASSERT_TRUE(eventually([&] { return servers.count("tools/call") == 2; }));
  calls::FunnelAccess::cancel(*registry, alice.ticket, "enough");
  EXPECT_EQ(alice.reply().kind, ReplyKind::unconfirmed);
  servers.set([](FakeServers& all) { all.holds_calls = false; });
  EXPECT_EQ(send(caller("carol")).reply().kind, ReplyKind::result);
  EXPECT_FALSE(bob.is_answered());
  EXPECT_EQ(servers.open_links(), 3U);
}

TEST_F(OwnSessionTest, OfAProcessIsLimitedFurther) {
  tuning.max_children = 1;
  config.upstreams = {upstream("git", "stdio")};
  servers.holds_calls = true;
  start();
  ASSERT_TRUE(becomes("connected"));
  Sent alice = send(caller("alice"));
  EXPECT_EQ(send(caller("bob")).reply().reason, "upstream_busy");
  EXPECT_FALSE(alice.is_answered());
}

TEST_F(OwnSessionTest, EndsWhenNobodyUsesItAnyMore) {
  tuning.session_idle = std::chrono::milliseconds(40);
  start();
  ASSERT_TRUE(becomes("connected"));
  EXPECT_EQ(send(caller("alice")).reply().kind, ReplyKind::result);
  ASSERT_TRUE(eventually([&] { return servers.open_links() == 1; }));
  EXPECT_EQ(status().sessions, 1U);
  EXPECT_EQ(send(caller("alice")).reply().kind, ReplyKind::result);
  EXPECT_EQ(servers.opened(), 3U);
}

TEST_F(OwnSessionTest, EndsWithItsCaller) {
  servers.holds_calls = true;
  start();
  ASSERT_TRUE(becomes("connected"));
  Sent alice = send(caller("alice"));
  Sent bob = send(caller("bob"));
  ASSERT_TRUE(eventually([&] { return servers.count("tools/call") == 2; }));
  registry->forget_caller("alice");
  EXPECT_EQ(alice.reply().kind, ReplyKind::unconfirmed);
  ASSERT_TRUE(eventually([&] { return servers.open_links() == 2; }));
  EXPECT_FALSE(bob.is_answered());
}

TEST_F(OwnSessionTest, ThatCannotBeOpenedIsAClearAnswer) {
  servers.refusal_of_own = Error{ErrorCode::unavailable, "too many sessions"};
  start();
  ASSERT_TRUE(becomes("connected"));
  Reply refused = send(caller("alice")).reply();
  EXPECT_EQ(refused.kind, ReplyKind::not_sent);
  EXPECT_EQ(refused.reason, "upstream_offline");
  EXPECT_THAT(refused.detail, testing::HasSubstr("too many sessions"));
  EXPECT_EQ(send().reply().kind, ReplyKind::result);
}

}  // namespace
}  // namespace hive::upstreams
