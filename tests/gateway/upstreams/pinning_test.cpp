#include "gateway/upstreams/pinning.h"

#include "gateway/upstreams/registry_fixture.h"
#include "gateway/upstreams/tool_digest.h"

namespace hive::upstreams {
namespace {

using test::FakeServers;
using test::RegistryTest;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST(ToolDigest, IsTheSameForTheSameMeaning) {
  std::string one =
      tool_digest(R"({"name":"a","description":"\u0061","inputSchema":{"type":"object","b":[1, {"x":1,"y":2}]}})");
  EXPECT_EQ(one,
            tool_digest(R"({"inputSchema":{"b":[1,{"y":2,"x":1}],"type":"object"},"description":"a","name":"a"})"));
  EXPECT_EQ(one, tool_digest(R"({"name":"a","description":"a","inputSchema":{"type":"object","b":[1,{"x":1,"y":2}]},
                                 "_meta":{"version":7},"icons":[]})"));
}

TEST(ToolDigest, DiffersWhenAnythingDiffersThatPeopleOrModelsAreTold) {
  std::string one = tool_digest(R"({"name":"a","description":"b","inputSchema":{"type":"object"}})");
  for (std::string_view other :
       {R"({"name":"b","description":"b","inputSchema":{"type":"object"}})",
        R"({"name":"a","description":"c","inputSchema":{"type":"object"}})",
        R"({"name":"a","title":"t","description":"b","inputSchema":{"type":"object"}})",
        R"({"name":"a","description":"b","inputSchema":{"type":"object","required":[]}})",
        R"({"name":"a","description":"b","inputSchema":{"type":"object"},"outputSchema":{}})",
        R"({"name":"a","description":"b","inputSchema":{"type":"object"},"annotations":{}})"}) {
    EXPECT_NE(one, tool_digest(other)) << other;
  }
  EXPECT_NE(tool_digest(R"({"name":"a","inputSchema":{"a":[1,[2]]}})"),
            tool_digest(R"({"name":"a","inputSchema":{"a":[[1],2]}})"));
}

TEST_F(RegistryTest, TakesAServerAtItsWordWhenItIsSeenForTheFirstTime) {
  servers.lists["tools"] = {FakeServers::tool("a"), FakeServers::tool("b")};
  start();
  ASSERT_TRUE(offers({"git__a", "git__b"}));
  EXPECT_EQ(count_events("git tool_accepted \"a\" at first sight, sha256 " + tool_digest(FakeServers::tool("a"))), 1U);
  EXPECT_EQ(count_events("git tool_accepted"), 2U);
}

TEST_F(RegistryTest, HoldsBackAToolThatChangedUntilItIsAccepted) {
  servers.lists["tools"] = {FakeServers::tool("a"), FakeServers::tool("b")};
  start();
  ASSERT_TRUE(offers({"git__a", "git__b"}));
  servers.set([](FakeServers& all) {
    all.lists["tools"] = {FakeServers::tool("a", "sends your files away"), FakeServers::tool("b")};
  });
  servers.say(servers.link(0), "notifications/tools/list_changed", "{}");
  ASSERT_TRUE(offers({"git__b"}));
  EXPECT_FALSE(registry->find_tool("git__a"));
  EXPECT_EQ(status().held_back, 1U);
  ASSERT_THAT(registry->held_back(), SizeIs(1));
  HeldBackTool held = registry->held_back()[0];
  EXPECT_EQ(held.tool, "a");
  EXPECT_EQ(held.accepted_raw, FakeServers::tool("a"));
  EXPECT_EQ(held.current_raw, FakeServers::tool("a", "sends your files away"));
  EXPECT_NE(held.accepted_sha256, held.current_sha256);
  EXPECT_EQ(
      count_events("git tool_held_back \"a\" is described otherwise than accepted, sha256 " + held.current_sha256), 1U);

  Reply not_called = send(nullptr, "git", {}, "tools/call", R"({"arguments":{},"name":"\u0061"})").reply();
  EXPECT_EQ(not_called.kind, ReplyKind::not_sent);
  EXPECT_EQ(not_called.reason, "tool_held_back");
  EXPECT_EQ(servers.count("tools/call"), 0U);
  EXPECT_EQ(send(nullptr, "git", {}, "tools/call", R"({"name":"b"})").reply().kind, ReplyKind::result);

  Result<void> refused = accept("a", held.accepted_sha256);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::already_exists);
  EXPECT_THAT(refused.error().message, HasSubstr("look at it again"));
  EXPECT_EQ(accept("c", held.current_sha256).error().code, ErrorCode::not_found);
  EXPECT_EQ(accept("a", held.current_sha256, "nobody").error().code, ErrorCode::not_found);
  EXPECT_TRUE(accept("a", held.current_sha256));
  EXPECT_THAT(tools(), ElementsAre("git__a", "git__b"));
  EXPECT_THAT(registry->held_back(), IsEmpty());
}

TEST_F(RegistryTest, RemembersWhatWasAcceptedOverARestart) {
  servers.lists["tools"] = {FakeServers::tool("a")};
  start();
  ASSERT_TRUE(offers({"git__a"}));
  servers.set([](FakeServers& all) { all.lists["tools"] = {FakeServers::tool("a"), FakeServers::tool("new")}; });
  restart();
  ASSERT_TRUE(offers({"git__a"}));
  ASSERT_THAT(registry->held_back(), SizeIs(1));
  EXPECT_EQ(registry->held_back()[0].tool, "new");
  EXPECT_EQ(registry->held_back()[0].accepted_sha256, "");
  ASSERT_TRUE(accept("new", registry->held_back()[0].current_sha256));
  restart();
  ASSERT_TRUE(offers({"git__a", "git__new"}));
  EXPECT_THAT(registry->held_back(), IsEmpty());
}

// A server that starts slowly lists nothing at first.
TEST_F(RegistryTest, SeesAServerForTheFirstTimeWhenItHasATool) {
  start();
  ASSERT_TRUE(becomes("connected"));
  ASSERT_TRUE(eventually([&] { return servers.count("resources/templates/list") == 1; }));
  servers.set([](FakeServers& all) { all.lists["tools"] = {FakeServers::tool("a")}; });
  servers.say(servers.link(0), "notifications/tools/list_changed", "{}");
  EXPECT_TRUE(offers({"git__a"}));
}

TEST_F(RegistryTest, LetsAServerChangeThatIsNotPinned) {
  config.upstreams[0].pin_tools = false;
  servers.lists["tools"] = {FakeServers::tool("a")};
  start();
  ASSERT_TRUE(offers({"git__a"}));
  servers.set([](FakeServers& all) { all.lists["tools"] = {FakeServers::tool("a", "else"), FakeServers::tool("b")}; });
  servers.say(servers.link(0), "notifications/tools/list_changed", "{}");
  EXPECT_TRUE(offers({"git__a", "git__b"}));
  EXPECT_EQ(count_events("git tool_"), 0U);
}

// What cannot be read is not known to be accepted, and what cannot be written down is not accepted.
TEST_F(RegistryTest, HoldsEverythingBackWithoutItsMemory) {
  servers.lists["tools"] = {FakeServers::tool("a")};
  auto opened = store::Database::open(folder.path("state.db"));
  ASSERT_TRUE(opened);
  database = *std::move(opened);
  database->run([](store::Connection& connection) { ASSERT_TRUE(connection.execute("DROP TABLE accepted_tools")); });
  start();
  ASSERT_TRUE(eventually([&] { return status().held_back == 1; }));
  EXPECT_THAT(tools(), IsEmpty());
  EXPECT_FALSE(accept("a", registry->held_back()[0].current_sha256));
  EXPECT_THAT(tools(), IsEmpty());
}

TEST_F(RegistryTest, DoesNotFillTheAuditLogForAServerThatChangesAllTheTime) {
  tuning.max_events_per_hour = 5;
  tuning.refresh_pause = std::chrono::milliseconds(1);
  servers.lists["tools"] = {FakeServers::tool("a")};
  start();
  ASSERT_TRUE(offers({"git__a"}));
  for (int k = 0; k < 10; ++k) {
    std::string text = "changed " + std::to_string(k);
    servers.set([&](FakeServers& all) { all.lists["tools"] = {FakeServers::tool("a", text)}; });
    servers.say(servers.link(0), "notifications/tools/list_changed", "{}");
    ASSERT_TRUE(eventually([&] {
      auto held = registry->held_back();
      return held.size() == 1 && held[0].current_raw == FakeServers::tool("a", text);
    }));
  }
  EXPECT_EQ(all_events().size(), 5U);
}

}  // namespace
}  // namespace hive::upstreams
