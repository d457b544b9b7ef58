#include "gateway/upstreams/registry_fixture.h"

namespace hive::upstreams {
namespace {

using test::FakeServers;
using test::RegistryTest;
using test::Sent;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::StartsWith;

TEST_F(RegistryTest, OffersWhatServersListUnderTheirPrefixes) {
  servers.lists["tools"] = {FakeServers::tool("a"), FakeServers::tool("b"), FakeServers::tool("c")};
  servers.lists["prompts"] = {R"({"name":"p"})"};
  servers.lists["resources"] = {R"({"uri":"file:///x","name":"x"})"};
  servers.lists["resourceTemplates"] = {R"({"uriTemplate":"file:///{name}","name":"y"})"};
  servers.page_size = 2;
  start();
  ASSERT_TRUE(offers({"git__a", "git__b", "git__c"}));
  EXPECT_EQ(registry->find_tool("git__b")->name, "b");
  EXPECT_EQ(registry->find_tool("git__b")->raw, FakeServers::tool("b"));
  EXPECT_FALSE(registry->find_tool("b"));
  EXPECT_EQ(registry->find_prompt("git__p")->upstream, "git");
  EXPECT_EQ(registry->find_resource("file:///x")->name, "file:///x");
  EXPECT_EQ(registry->find_resource("file:///other")->name, "file:///{name}");
  EXPECT_FALSE(registry->find_resource("file:///a/b"));
  EXPECT_THAT(registry->listing()->capabilities, Contains("resources.subscribe"));
  UpstreamStatus now = status();
  EXPECT_EQ(now.state, "connected");
  EXPECT_EQ(now.revision, "2025-11-25");
  EXPECT_EQ(now.tools, 3U);
  EXPECT_EQ(now.held_back, 0U);
  EXPECT_EQ(now.sessions, 1U);
  EXPECT_EQ(now.url, "http://127.0.0.1:1/mcp");
  EXPECT_THAT(all_events(), Contains("git upstream_connected fake 1, MCP 2025-11-25"));
}

TEST_F(RegistryTest, CallsAToolAndHandsTheAnswerOn) {
  start();
  ASSERT_TRUE(becomes("connected"));
  Reply answer = send().reply();
  EXPECT_EQ(answer.kind, ReplyKind::result);
  EXPECT_EQ(answer.body, R"({"content":[]})");
  EXPECT_EQ(servers.last("tools/call")->params, R"({"name":"t"})");
  EXPECT_EQ(send(nullptr, "nobody").reply().reason, "upstream_unknown");
}

TEST_F(RegistryTest, LetsACallWaitForAServerThatIsStarting) {
  servers.hangs = true;
  start();
  Sent sent = send();
  Sent impatient = send(nullptr, "git", std::chrono::milliseconds(1));
  Reply late = impatient.reply();
  EXPECT_EQ(late.kind, ReplyKind::not_sent);
  EXPECT_THAT(late.detail, HasSubstr("did not become ready in time"));
  ASSERT_FALSE(sent.is_answered());
  auto link = servers.link(0);
  link->worker->post([&] { link->events.on_ready(servers.info); });
  EXPECT_EQ(sent.reply().kind, ReplyKind::result);
}

TEST_F(RegistryTest, SaysSinceWhenAServerIsOfflineAndKeepsItsTools) {
  servers.lists["tools"] = {FakeServers::tool("a")};
  start();
  ASSERT_TRUE(offers({"git__a"}));
  servers.set([](FakeServers& all) { all.refusal = Error{ErrorCode::unavailable, "connection refused"}; });
  servers.drop(servers.link(0), {ErrorCode::io, "connection reset"});
  ASSERT_TRUE(becomes("error: connection refused"));
  Reply refused = send().reply();
  EXPECT_EQ(refused.kind, ReplyKind::not_sent);
  EXPECT_EQ(refused.reason, "upstream_offline");
  EXPECT_THAT(refused.detail, AllOf(HasSubstr("\"git\" is offline since 2"), HasSubstr(": connection refused")));
  EXPECT_THAT(tools(), ElementsAre("git__a"));
  ASSERT_TRUE(eventually([&] { return servers.opened() > 4; }));
  EXPECT_EQ(count_events("git upstream_lost connection reset"), 1U);

  servers.set([](FakeServers& all) { all.refusal.reset(); });
  ASSERT_TRUE(becomes("connected"));
  EXPECT_EQ(send().reply().kind, ReplyKind::result);
  ASSERT_TRUE(eventually([&] { return count_events("git upstream_connected") == 2; }));
  EXPECT_EQ(count_events("git upstream_lost"), 1U);
  EXPECT_EQ(status().restarts, 1U);
}

TEST_F(RegistryTest, AnswersWhatWasOnItsWayAsLost) {
  servers.holds_calls = true;
  start();
  ASSERT_TRUE(becomes("connected"));
  Sent sent = send();
  ASSERT_TRUE(eventually([&] { return servers.count("tools/call") == 1; }));
  EXPECT_EQ(status().calls_in_flight, 1U);
  servers.drop(servers.link(0), {ErrorCode::io, "killed"});
  EXPECT_EQ(sent.reply().kind, ReplyKind::lost);
  EXPECT_EQ(status().calls_in_flight, 0U);
}

// A session that the server has forgotten is opened anew at once, and what the server never saw is sent again, once.
TEST_F(RegistryTest, SendsAgainWhatAForgottenSessionNeverSaw) {
  share = 1;
  tuning.backoff_base = tuning.backoff_cap = std::chrono::hours(1);
  start();
  ASSERT_TRUE(becomes("connected"));
  servers.set([](FakeServers& all) {
    all.next_call.emplace();
    all.next_call->kind = ReplyKind::not_sent;
    all.next_call->reason = "session_unknown";
    all.end_with_next_call = Error{ErrorCode::not_found, "no such session"};
  });
  EXPECT_EQ(send().reply().kind, ReplyKind::result);
  EXPECT_EQ(servers.opened(), 2U);
  EXPECT_EQ(count_events("git upstream_lost"), 0U);
}

TEST_F(RegistryTest, ForgettingEverySessionIsNoReasonToHurry) {
  share = 1;
  tuning.backoff_base = tuning.backoff_cap = std::chrono::hours(1);
  start();
  ASSERT_TRUE(becomes("connected"));
  servers.drop(servers.link(0), {ErrorCode::not_found, "no such session"});
  ASSERT_TRUE(eventually([&] { return servers.opened() == 2 && status().restarts == 1; }));
  servers.drop(servers.link(1), {ErrorCode::not_found, "no such session"});
  ASSERT_TRUE(becomes("error: no such session"));
  EXPECT_EQ(servers.opened(), 2U);
}

// A proxy that opens a session and ends it at once looks alive every time.
TEST_F(RegistryTest, WaitsLongerAndLongerForAServerThatIsNeverUseful) {
  share = 1;
  servers.ends_at_once = true;
  auto begin = std::chrono::steady_clock::now();
  start();
  ASSERT_TRUE(eventually([&] { return servers.opened() == 6; }));
  EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(20 + 40 + 80 + 160 + 160));
}

TEST_F(RegistryTest, TakesNoMoreThanItsShareOnItsWay) {
  tuning.max_in_flight = 3;
  servers.holds_calls = true;
  start();
  ASSERT_TRUE(becomes("connected"));
  std::vector<Sent> sent;
  for (int k = 0; k < 3; ++k)
    sent.push_back(send());
  Reply refused = send().reply();
  EXPECT_EQ(refused.kind, ReplyKind::not_sent);
  EXPECT_EQ(refused.reason, "upstream_busy");
  ASSERT_TRUE(eventually([&] { return servers.count("tools/call") == 3; }));
  calls::FunnelAccess::cancel(*registry, sent[1].ticket, "not needed");
  EXPECT_EQ(sent[1].reply().kind, ReplyKind::unconfirmed);
  EXPECT_EQ(servers.last("notifications/cancelled")->params, "not needed");
  EXPECT_FALSE(sent[0].is_answered() || sent[2].is_answered());
}

TEST_F(RegistryTest, WithdrawsACallThatWasNotSent) {
  servers.hangs = true;
  start();
  Sent sent = send();
  calls::FunnelAccess::cancel(*registry, sent.ticket, "not needed");
  Reply reply = sent.reply();
  EXPECT_EQ(reply.kind, ReplyKind::not_sent);
  EXPECT_EQ(reply.reason, "cancelled");
  calls::FunnelAccess::cancel(*registry, sent.ticket, "again");
  calls::FunnelAccess::cancel(*registry, 0, "nothing");
}

TEST_F(RegistryTest, ChangesOnlyWhatTheConfigurationChanges) {
  config.upstreams = {upstream("git"), upstream("web"), upstream("old")};
  start();
  ASSERT_TRUE(becomes("connected", "old") && becomes("connected", "web") && becomes("connected"));
  config.upstreams = {upstream("web"), upstream("git"), upstream("off")};
  config.upstreams[0].field = "external_mcp_servers[0]";
  config.upstreams[1].headers["X-Key"] = config::Secret("other");
  config.upstreams[2].enabled = false;
  registry->apply(config);
  ASSERT_TRUE(eventually([&] { return servers.opened() == 4 && servers.open_links() == 2; }));
  EXPECT_FALSE(registry->has("old"));
  EXPECT_TRUE(registry->has("off"));
  EXPECT_EQ(status("off").state, "disabled");
  EXPECT_EQ(send(nullptr, "off").reply().reason, "upstream_offline");
  EXPECT_EQ(servers.link(3)->options.headers[0].second, "other");
  EXPECT_THAT(registry->statuses(), SizeIs(3));
  EXPECT_EQ(registry->statuses()[0].name, "web");
}

TEST_F(RegistryTest, HandsEverythingThatIsConfiguredToTheConnection) {
  config::UpstreamConfig child = upstream("child", "stdio");
  child.url.clear();
  child.command = "npx";
  child.arguments = {"-y", "server"};
  child.environment["KEY"] = config::Secret("hush");
  config::UpstreamConfig old = upstream("old", "sse");
  old.auth_token = config::Secret("hush-2");
  config.upstreams = {child, old};
  start();
  ASSERT_TRUE(eventually([&] { return servers.opened() == 2; }));
  for (std::size_t k = 0; k < 2; ++k) {
    const ConnectionOptions& options = servers.link(k)->options;
    EXPECT_EQ(options.capabilities, "{}");
    EXPECT_THAT(options.client_info, StartsWith(R"({"name":"myrmex-gateway")"));
    if (options.name == "child") {
      EXPECT_EQ(options.transport, TransportKind::stdio);
      EXPECT_EQ(options.era, EraPreference::probe);
      EXPECT_EQ(options.command, "npx");
      EXPECT_THAT(options.arguments, ElementsAre("-y", "server"));
      EXPECT_EQ(options.environment.at("KEY"), "hush");
    } else {
      EXPECT_EQ(options.transport, TransportKind::sse);
      EXPECT_EQ(options.era, EraPreference::legacy);
      EXPECT_EQ(options.auth_token, "hush-2");
    }
  }
  EXPECT_EQ(status("child").url, "npx -y server");
}

TEST_F(RegistryTest, EndsEverythingWhenItIsClosed) {
  servers.holds_calls = true;
  start();
  ASSERT_TRUE(becomes("connected"));
  Sent sent = send();
  ASSERT_TRUE(eventually([&] { return servers.count("tools/call") == 1; }));
  registry->close();
  EXPECT_EQ(sent.reply().kind, ReplyKind::lost);
  EXPECT_EQ(servers.open_links(), 0U);
  EXPECT_EQ(send().reply().reason, "upstream_unknown");
  EXPECT_THAT(registry->statuses(), IsEmpty());
}

TEST_F(RegistryTest, AnswersEveryCallOnceWhateverHappens) {
  servers.set([](FakeServers& all) { all.info.revision = mcp::Revision::v2026_07_28; });
  start();
  ASSERT_TRUE(becomes("connected"));
  std::atomic<bool> goes_on = true;
  std::jthread breaker([&] {
    while (goes_on) {
      if (auto link = servers.link(servers.opened() - 1)) servers.drop(link, {ErrorCode::io, "broken"});
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
  });
  std::vector<Sent> sent;
  for (int k = 0; k < 1000; ++k) {
    sent.push_back(send());
    if (k % 3 == 0) calls::FunnelAccess::cancel(*registry, sent.back().ticket, "not needed");
    if (k % 100 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  for (const Sent& each : sent)
    (void)each.reply();
  goes_on = false;
  EXPECT_EQ(status().calls_in_flight, 0U);
}

}  // namespace
}  // namespace hive::upstreams
