// What a credential that reaches a part of the fleet gets to see.

#include "gateway/surfaces/rest/rest_fixture.h"
#include "gateway/surfaces/rest/route.h"

namespace hive::rest::test {
namespace {

class ScopeTest : public RestTest {
 protected:
  ScopeTest() {
    config.agent_tags = {{"edge-1", {"lab"}}, {"edge-2", {"eu"}}, {"edge-3", {"us"}}};
    for (const char* id : {"edge-1", "edge-2", "edge-3"}) {
      fleet::AgentStatus status;
      status.id = id;
      status.online = true;
      fleet.agents.push_back(status);
      for (const char* tool : {"get_metrics", "run_command"})
        fleet.all_tools.push_back({id, tool, "", R"({"name":")" + std::string(tool) + "\"}"});
    }
  }

  std::string names(const boost::json::value& list, std::string_view key) {
    std::string all;
    for (const boost::json::value& entry : list.as_array())
      all += text_at(entry, key) + " ";
    return all;
  }
};

TEST_F(ScopeTest, TheStatusShowsTheAgentsWithinReach) {
  EXPECT_EQ(names(json_of(get("/api/status", scoped_operator_token)).at("agents"), "id"), "edge-1 edge-2 ");
  EXPECT_EQ(names(json_of(get("/api/status", operator_token)).at("agents"), "id"), "edge-1 edge-2 edge-3 ");
}

TEST_F(ScopeTest, TheFleetShowsTheAgentsWithinReach) {
  EXPECT_EQ(names(json_of(get("/api/fleet", scoped_operator_token)), "id"), "edge-1 edge-2 ");
  EXPECT_EQ(names(json_of(get("/api/fleet?tag=us", scoped_operator_token)), "id"), "");
}

TEST_F(ScopeTest, TheHistoryOfAnAgentOutOfReachIsRefusedAndRecorded) {
  EXPECT_EQ(status_of(get("/api/fleet?agent=edge-2", scoped_operator_token)), 200u);
  for (const char* agent : {"edge-3", "unknown"}) {
    std::string response = get("/api/fleet?agent=" + std::string(agent), scoped_operator_token);
    EXPECT_EQ(problem_code(response, 403), "scope");
    EXPECT_EQ(header_of(response, "Myrmex-Reason"), "scope");
  }
  ASSERT_EQ(log.records().size(), 2u);
  EXPECT_EQ(log.records()[0].action, "access_denied");
  EXPECT_EQ(log.records()[0].reason, "scope");
  EXPECT_EQ(log.records()[0].detail, "GET /api/fleet of agent \"edge-3\"");
}

TEST_F(ScopeTest, TheToolsAreThoseWithinReach) {
  EXPECT_EQ(names(json_of(get("/api/tools", scoped_operator_token)).at("tools"), "name"),
            "edge-1__get_metrics edge-2__get_metrics ");
  EXPECT_EQ(json_of(get("/api/tools", operator_token)).at("tools").as_array().size(), 6u);
}

TEST_F(ScopeTest, WhatConcernsTheWholeFleetIsClosed) {
  int closed = 0;
  for (const Route& route : routes()) {
    if (!route.whole_fleet) continue;
    ++closed;
    std::string response = send(route.method, route.path, scoped_admin_token, "", route.method == "POST" ? "{}" : "");
    EXPECT_EQ(problem_code(response, 403), "scope") << route.path;
    audit::Record last = log.records().back();
    EXPECT_EQ(last.action, "access_denied");
    EXPECT_EQ(last.reason, "scope");
    EXPECT_EQ(last.detail, std::string(route.method) + " " + std::string(route.path));
    EXPECT_EQ(last.request_id, header_of(response, "Myrmex-Request-Id"));
  }
  EXPECT_GE(closed, 3);
}

TEST_F(ScopeTest, WhoamiTellsTheReachOfACredential) {
  const boost::json::value scoped = json_of(get("/api/whoami", scoped_operator_token));
  EXPECT_EQ(text_at(scoped, "identity"), "alice");
  EXPECT_EQ(text_at(scoped, "credential"), "scoped_token");
  EXPECT_EQ(scoped.at("scope").at("agents").as_array().at(0).as_string(), "edge-1");
  EXPECT_EQ(scoped.at("scope").at("tags").as_array().at(0).as_string(), "eu");
  EXPECT_EQ(scoped.at("scope").at("tools").as_array().at(0).as_string(), "get_*");
  EXPECT_FALSE(scoped.as_object().contains("expires_at"));
  const boost::json::value whole = json_of(get("/api/whoami", operator_token));
  EXPECT_TRUE(whole.at("scope").is_null());
  EXPECT_EQ(text_at(whole, "identity"), text_at(whole, "principal"));
}

TEST_F(ScopeTest, WhoamiTellsWhenACredentialExpires) {
  config.scoped_tokens[0].expires_at = clock.wall_now() + std::chrono::hours(1);
  EXPECT_EQ(text_at(json_of(get("/api/whoami", scoped_operator_token)), "expires_at"),
            format_rfc3339(clock.wall_now() + std::chrono::hours(1)));
}

}  // namespace
}  // namespace hive::rest::test
