#include "gateway/surfaces/rest/rest_fixture.h"

namespace hive::rest::test {
namespace {

fleet::AgentStatus agent(std::string id, bool online) {
  fleet::AgentStatus status;
  status.id = std::move(id);
  status.address = "192.0.2.7";
  status.os_version = "Debian GNU/Linux 12";
  status.running_services = {"nginx"};
  status.open_ports = {"80"};
  status.online = online;
  status.last_seen = WallTime(std::chrono::seconds(1'800'000'000));
  return status;
}

TEST_F(RestTest, TheStatusHasTheShapeOfTheReference) {
  fleet.agents = {agent("edge-1", true), agent("edge-2", false)};
  fleet.agents[1].os_version.clear();
  fleet.agents[1].connected_at = clock.wall_now();
  fleet.agents[1].last_seen = WallTime();
  boost::json::value body = json_of(get("/api/status", reader_token));
  const auto& agents = body.at("agents").as_array();
  ASSERT_EQ(agents.size(), 2u);
  EXPECT_EQ(text_at(agents[0], "id"), "edge-1");
  EXPECT_EQ(text_at(agents[0], "ip"), "192.0.2.7");
  EXPECT_EQ(text_at(agents[0], "os_version"), "Debian GNU/Linux 12");
  EXPECT_EQ(agents[0].at("running_services").as_array()[0].as_string(), "nginx");
  EXPECT_EQ(agents[0].at("open_ports").as_array()[0].as_string(), "80");
  EXPECT_TRUE(agents[0].at("online").as_bool());
  EXPECT_EQ(text_at(agents[0], "last_seen"), "2027-01-15T08:00:00.000Z");
  EXPECT_EQ(text_at(agents[1], "os_version"), "Loading...");
  EXPECT_FALSE(agents[1].as_object().contains("last_seen"));
  EXPECT_TRUE(body.at("upstreams").as_array().empty());
  EXPECT_EQ(body.at("pending_approvals").as_int64(), 0);
  EXPECT_EQ(text_at(body.at("gateway"), "id"), "gw-1");
  EXPECT_TRUE(body.at("audit").at("healthy").as_bool());
}

TEST_F(RestTest, TextFromAgentsStaysText) {
  fleet.agents = {agent("edge-1", true)};
  fleet.agents[0].os_version = "\"},{\"id\":\"forged\xff\x1b[2J";
  boost::json::value body = json_of(get("/api/status"));
  EXPECT_EQ(body.at("agents").as_array().size(), 1u);
}

TEST_F(RestTest, TheFleetIsFilteredAsInTheReference) {
  fleet.agents = {agent("edge-1", true), agent("edge-2", false)};
  fleet.agents[1].os_version = "Alpine Linux";
  auto ids = [&](std::string_view query) {
    std::string all;
    const boost::json::value document = json_of(get("/api/fleet" + std::string(query)));
    for (const boost::json::value& entry : document.as_array())
      all += text_at(entry, "id") + " ";
    return all;
  };
  EXPECT_EQ(ids(""), "edge-1 edge-2 ");
  EXPECT_EQ(ids("?status=ONLINE"), "edge-1 ");
  EXPECT_EQ(ids("?status=stale"), "edge-2 ");
  EXPECT_EQ(ids("?status=whatever"), "edge-1 edge-2 ");
  EXPECT_EQ(ids("?tag=lab"), "edge-1 ");
  EXPECT_EQ(ids("?tag=la"), "");
  EXPECT_EQ(ids("?os=alpine%20l"), "edge-2 ");
  EXPECT_EQ(ids("?agent=edge-1"), "edge-1 edge-2 ");
}

TEST_F(RestTest, AFleetEntryHasTheShapeOfTheReference) {
  fleet.agents = {agent("edge-1", true)};
  boost::json::value entry = json_of(get("/api/fleet?agent=edge-1")).as_array()[0];
  EXPECT_EQ(text_at(entry, "os"), "Debian GNU/Linux 12");
  EXPECT_EQ(entry.at("tags").as_array().size(), 2u);
  EXPECT_EQ(entry.at("services").as_array().size(), 1u);
  EXPECT_EQ(entry.at("ports").as_array().size(), 1u);
  EXPECT_TRUE(entry.at("latest_metrics").is_null());
  EXPECT_EQ(entry.at("history_len").as_int64(), 0);
  EXPECT_TRUE(entry.at("history").as_array().empty());
  EXPECT_EQ(text_at(entry, "gateway"), "gw-1");
}

TEST_F(RestTest, ToolsCarryTheirFullNameAndOtherwiseWhatTheAgentSaid) {
  fleet.all_tools = {
      {"edge-1", "get_metrics", "d",
       R"({"description":"d","name":"get_metrics","inputSchema":{"type":"object","x":1.0e0}})"},
      {"edge-1", "run_command", "d", R"({"name":"run_command","annotations":{"title":"t"},"_meta":{"k":1}} )"},
      {"edge-1", "broken", "d", R"({"description":"no name"})"},
  };
  std::string response = get("/api/tools", reader_token);
  EXPECT_NE(
      response.find(R"({"description":"d","name":"edge-1__get_metrics","inputSchema":{"type":"object","x":1.0e0},)"),
      std::string::npos)
      << response;
  const boost::json::value document = json_of(response);
  const auto& tools = document.at("tools").as_array();
  ASSERT_EQ(tools.size(), 2u);
  EXPECT_TRUE(tools[0].at("annotations").at("readOnlyHint").as_bool());
  EXPECT_EQ(text_at(tools[0].at("_meta"), "myrmex-hive/tier"), "read");
  EXPECT_EQ(text_at(tools[1], "name"), "edge-1__run_command");
  EXPECT_EQ(text_at(tools[1].at("annotations"), "title"), "t");
}

TEST_F(RestTest, TheAuditPageHasTheRawEntriesAndTheWayToTheNext) {
  audit::Query seen;
  read_audit = [&](const audit::Query& query) -> Result<audit::Page> {
    seen = query;
    return audit::Page{{R"({"seq":9})", R"({"seq":8})"}, 8};
  };
  std::string response =
      get("/api/audit?actor=token:1&agent=edge-1&action=tool_call&tool=t&call_id=c&request_id=r-7-1&outcome=denied&"
          "reason=role&since=2026-11-30&until=2026-11-30T12:00:00Z&limit=2&before=10");
  ASSERT_EQ(status_of(response), 200u) << response;
  EXPECT_EQ(body_of(response), "{\"entries\":[{\"seq\":9},{\"seq\":8}],\"next_before\":8}\n");
  EXPECT_EQ(seen.principal, "token:1");
  EXPECT_EQ(seen.agent, "edge-1");
  EXPECT_EQ(seen.action, "tool_call");
  EXPECT_EQ(seen.tool, "t");
  EXPECT_EQ(seen.call_id, "c");
  EXPECT_EQ(seen.request_id, "r-7-1");
  EXPECT_EQ(seen.outcome, protocol::Outcome::denied);
  EXPECT_EQ(seen.reason, "role");
  EXPECT_EQ(seen.since, "2026-11-30");
  EXPECT_EQ(seen.until, "2026-11-30T12:00:00Z");
  EXPECT_EQ(seen.limit, 2u);
  EXPECT_EQ(seen.before_seq, 10u);
}

TEST_F(RestTest, ThePrincipalOfAnAuditQueryHasTwoNames) {
  std::string seen;
  read_audit = [&](const audit::Query& query) -> Result<audit::Page> {
    seen = query.principal;
    return audit::Page();
  };
  get("/api/audit?principal=bob");
  EXPECT_EQ(seen, "bob");
  EXPECT_EQ(problem_code(get("/api/audit?principal=bob&actor=bob"), 400), "invalid_query");
}

TEST_F(RestTest, TheLastAuditPageSaysThatThereIsNoMore) {
  EXPECT_EQ(body_of(get("/api/audit")), "{\"entries\":[],\"next_before\":null}\n");
}

TEST_F(RestTest, AuditQueriesThatWouldSilentlyMatchNothingAreRefused) {
  for (const char* query :
       {"outcome=good", "limit=0", "limit=1001", "limit=x", "before=-1", "since=yesterday", "until=30.11.2026",
        "since=2026-11-30T12:00:00%2B01:00", "since=2", "limit=%00", "limit=5&limit=6", "agent=%ff", "agent=%4"})
    EXPECT_EQ(problem_code(get("/api/audit?" + std::string(query)), 400), "invalid_query") << query;
}

TEST_F(RestTest, AnUnreadableAuditLogIsAnErrorAndNotAnEmptyPage) {
  read_audit = [](const audit::Query&) -> Result<audit::Page> { return fail(ErrorCode::io, "/x/audit.log: gone"); };
  EXPECT_EQ(problem_code(get("/api/audit"), 500), "audit_unreadable");
}

}  // namespace
}  // namespace hive::rest::test
