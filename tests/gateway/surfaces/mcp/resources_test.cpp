#include "gateway/surfaces/mcp/core_fixture.h"

namespace hive::mcp_surface::test {
namespace {

class ResourcesTest : public CoreTest {
 protected:
  Asked read(std::string_view uri, policy::Principal who = admin()) {
    return modern("resources/read", R"({"uri":")" + std::string(uri) + "\"}", std::move(who));
  }
  static boost::json::value content(const Asked& asked) {
    return parsed(asked.result().at("contents").at(0).at("text").as_string());
  }
};

TEST_F(ResourcesTest, TheFleetIsReadAsFarAsTheScopeReaches) {
  start();
  EXPECT_EQ(names(content(read("hive://fleet")), "agents", "id"), (std::vector<std::string>{"edge-1", "edge-2"}));
  EXPECT_EQ(names(content(read("hive://fleet", scoped())), "agents", "id"), (std::vector<std::string>{"edge-1"}));
  boost::json::value agent = content(read("hive://agents/edge-1"));
  EXPECT_TRUE(agent.at("online").as_bool());
  EXPECT_EQ(agent.at("tags").at(0).as_string(), "lab");
  EXPECT_EQ(agent.at("services").at(0).as_string(), "nginx.service");
  EXPECT_EQ(read("hive://fleet").result().at("cacheScope").as_string(), "private");
}

TEST_F(ResourcesTest, WhatIsNotThereIsNotFoundInTheWordsOfItsEra) {
  start();
  for (const char* uri : {"hive://agents/nobody", "hive://agents/", "hive://agents/nobody/metrics", "hive://nothing",
                          "test://nothing", "", "hive://audit/x", "hive://audit/99"}) {
    Asked asked = read(uri);
    EXPECT_EQ(asked.code(), -32602) << uri;
    EXPECT_EQ(asked.error().at("data").at("uri").as_string(), uri);
    EXPECT_EQ(legacy(open(), "resources/read", R"({"uri":")" + std::string(uri) + "\"}").code(), -32002) << uri;
  }
  EXPECT_EQ(read("hive://agents/edge-2", scoped()).code(), -32602);
  EXPECT_EQ(read("test://one", scoped()).code(), -32602);
  EXPECT_EQ(funnel.count(), 0u);
}

TEST_F(ResourcesTest, MetricsAreMeasuredThroughTheFunnel) {
  funnel.answer = [](const calls::Call& call) {
    EXPECT_EQ(call.tool, "get_metrics");
    return success(R"({"content":[{"type":"text","text":"x"}],"structuredContent":{"load_avg_1m":0.50}})");
  };
  start();
  Asked asked = read("hive://agents/edge-1/metrics");
  EXPECT_EQ(asked.result().at("contents").at(0).at("text").as_string(), R"({"load_avg_1m":0.50})");
}

TEST_F(ResourcesTest, MetricsThatAGateRefusesAreAnErrorWithTheReason) {
  funnel.answer = [](const calls::Call&) { return refused("role", "read-only may not"); };
  start();
  Asked asked = read("hive://agents/edge-1/metrics");
  EXPECT_EQ(asked.code(), -32603);
  EXPECT_EQ(asked.error().at("data").at("reason").as_string(), "role");
  EXPECT_EQ(asked.error().at("message").as_string(), "read-only may not");
}

TEST_F(ResourcesTest, AnAuditEntryIsForAdminsOfTheWholeFleet) {
  read_audit = [](const audit::Query& query) -> Result<audit::Page> {
    EXPECT_EQ(query.before_seq, 8u);
    return audit::Page{{R"({"seq":7,"action":"x"})"}, {}};
  };
  start();
  EXPECT_EQ(content(read("hive://audit/7")).at("action").as_string(), "x");
  policy::Principal reader = {.name = "r", .role = policy::Role::read_only, .grant = nullptr};
  EXPECT_EQ(read("hive://audit/7", reader).code(), -32602);
  EXPECT_EQ(read("hive://audit/7", scoped()).code(), -32602);
}

TEST_F(ResourcesTest, AnEntryThatIsNotTheOneAskedForIsNotFound) {
  read_audit = [](const audit::Query&) -> Result<audit::Page> { return audit::Page{{R"({"seq":6})"}, {}}; };
  start();
  EXPECT_EQ(read("hive://audit/7").code(), -32602);
}

TEST_F(ResourcesTest, AResourceOfAnUpstreamIsReadThroughTheFunnel) {
  start();
  Asked asked = read("test://one");
  auto running = funnel.at(0);
  EXPECT_EQ(running->call.target, calls::TargetKind::upstream);
  EXPECT_EQ(running->call.agent, "plain");
  EXPECT_EQ(running->call.method, "resources/read");
  EXPECT_EQ(running->call.params, R"({"uri":"test://one"})");
  running->end(success(R"({"contents":[{"uri":"test://one","text":"t"}]})"));
  boost::json::value result = asked.result();
  EXPECT_EQ(result.at("ttlMs").as_int64(), 0);
  EXPECT_EQ(result.at("cacheScope").as_string(), "private");
}

TEST_F(ResourcesTest, APromptOfAnUpstreamIsAskedUnderItsOwnName) {
  start();
  Asked asked = modern("prompts/get", R"({"name":"other__greet","arguments":{"who":"bob"}})");
  EXPECT_EQ(funnel.at(0)->call.params, R"({"name":"greet","arguments":{"who":"bob"}})");
  funnel.at(0)->end(refused("upstream_offline", "other is away"));
  EXPECT_EQ(asked.code(), -32603);
  EXPECT_EQ(asked.error().at("data").at("reason").as_string(), "upstream_offline");
}

}  // namespace
}  // namespace hive::mcp_surface::test
