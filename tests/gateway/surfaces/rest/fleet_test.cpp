// GET /api/fleet with filters, order and pages; GET /api/status and /api/tools page by page.

#include "gateway/surfaces/rest/rest_fixture.h"

namespace hive::rest::test {
namespace {

WallTime at(int second) {
  return WallTime(std::chrono::seconds(1'800'000'000 + second));
}

class FleetEndpointTest : public RestTest {
 protected:
  void add(const std::string& id, bool online, std::string os = "Debian") {
    fleet::AgentStatus status;
    status.id = id;
    status.address = "192.0.2." + std::to_string(fleet.agents.size());
    status.os_version = std::move(os);
    status.running_services = {id + ".service"};
    status.online = online;
    status.connected_at = at(static_cast<int>(fleet.agents.size()));
    status.connections = 1;
    if (!online) status.offline_since = at(1000 - static_cast<int>(fleet.agents.size()));
    fleet.agents.push_back(status);
  }

  /// All ids of all pages, and how many pages there were.
  std::pair<std::string, int> pages(const std::string& query, const std::string& token = std::string(admin_token)) {
    std::string all;
    std::string cursor;
    int count = 0;
    do {
      boost::json::value page =
          json_of(get("/api/fleet?" + query + (cursor.empty() ? "" : "&cursor=" + cursor), token));
      for (const boost::json::value& entry : page.at("agents").as_array())
        all += text_at(entry, "id") + " ";
      const boost::json::value& next = page.at("next_cursor");
      cursor = next.is_null() ? "" : std::string(next.as_string());
      ++count;
    } while (!cursor.empty() && count < 100);
    return {all, count};
  }
};

TEST_F(FleetEndpointTest, PagesShowEachAgentOnce) {
  for (int i = 0; i < 10; ++i)
    add("edge-" + std::to_string(i), true);
  EXPECT_EQ(pages("limit=3"),
            (std::pair<std::string, int>("edge-0 edge-1 edge-2 edge-3 edge-4 edge-5 edge-6 edge-7 edge-8 edge-9 ", 4)));
  EXPECT_EQ(pages("limit=5").second, 2);
  EXPECT_EQ(pages("limit=3&sort=-id").first, "edge-9 edge-8 edge-7 edge-6 edge-5 edge-4 edge-3 edge-2 edge-1 edge-0 ");
}

TEST_F(FleetEndpointTest, APageGoesOnWhereTheLastEndedThoughAgentsComeAndGo) {
  for (const char* id : {"b", "d", "f", "h"})
    add(id, true);
  boost::json::value first = json_of(get("/api/fleet?limit=2"));
  std::string cursor(first.at("next_cursor").as_string());
  std::erase_if(fleet.agents, [](const fleet::AgentStatus& agent) { return agent.id == "d"; });
  add("a", true);
  add("e", true);
  boost::json::value second = json_of(get("/api/fleet?limit=9&cursor=" + cursor));
  std::string ids;
  for (const boost::json::value& entry : second.at("agents").as_array())
    ids += text_at(entry, "id") + " ";
  EXPECT_EQ(ids, "e f h ");
}

TEST_F(FleetEndpointTest, TellsHowManyThereAreOfEachState) {
  add("edge-1", true);
  add("edge-2", false);
  add("edge-3", false);
  fleet.agents[2].connected_at = {};
  fleet.agents[1].flapping = std::make_shared<const fleet::Flapping>(
      fleet::Flapping{.since = at(7), .connections = 8, .contested = true, .addresses = {"192.0.2.1", "192.0.2.2"}});
  boost::json::value page = json_of(get("/api/fleet?limit=1"));
  EXPECT_EQ(page.at("total").as_int64(), 3);
  EXPECT_EQ(page.at("online").as_int64(), 1);
  EXPECT_EQ(page.at("offline").as_int64(), 1);
  EXPECT_EQ(page.at("never_connected").as_int64(), 1);
  EXPECT_EQ(page.at("flapping").as_int64(), 1);
  EXPECT_EQ(pages("limit=9&status=online").first, "edge-1 ");
  EXPECT_EQ(pages("limit=9&status=offline").first, "edge-2 ");
  EXPECT_EQ(pages("limit=9&status=never_connected").first, "edge-3 ");
  EXPECT_EQ(pages("limit=9&status=stale").first, "edge-2 edge-3 ");
  boost::json::value flapping = json_of(get("/api/fleet?limit=9&status=flapping")).at("agents").as_array().at(0);
  EXPECT_EQ(text_at(flapping, "id"), "edge-2");
  EXPECT_EQ(text_at(flapping, "status"), "offline");
  EXPECT_EQ(text_at(flapping, "offline_since"), "2027-01-15T08:16:39.000Z");
  EXPECT_TRUE(flapping.at("flapping").at("contested").as_bool());
  EXPECT_EQ(text_at(flapping.at("flapping"), "since"), "2027-01-15T08:00:07.000Z");
  EXPECT_EQ(flapping.at("flapping").at("addresses").as_array().size(), 2u);
}

TEST_F(FleetEndpointTest, IsFilteredById) {
  for (const char* id : {"web-1", "web-2", "db-1"})
    add(id, true);
  EXPECT_EQ(pages("limit=9&id=web-*").first, "web-1 web-2 ");
  EXPECT_EQ(pages("limit=9&id=*-1").first, "db-1 web-1 ");
  EXPECT_EQ(body_of(get("/api/fleet?id=nobody")), "[]\n");
}

TEST_F(FleetEndpointTest, IsSearchedByTextWhateverItsCase) {
  add("web-1", true, "Alpine Linux");
  add("web-2", true);
  EXPECT_EQ(pages("limit=9&q=ALPINE").first, "web-1 ");
  EXPECT_EQ(pages("limit=9&q=web-2.serv").first, "web-2 ");
  EXPECT_EQ(pages("limit=9&q=192.0.2.1").first, "web-2 ");
}

TEST_F(FleetEndpointTest, IsSortedAsAsked) {
  add("a", false, "Zorin");
  add("b", false, "alpine");
  add("c", false, "Debian");
  add("d", true, "debian");
  EXPECT_EQ(pages("limit=1&sort=os").first, "b c d a ");
  EXPECT_EQ(pages("limit=1&sort=-os").first, "a d c b ");
  EXPECT_EQ(pages("limit=2&sort=-address").first, "d c b a ");
  EXPECT_EQ(pages("limit=2&sort=-offline_since").first, "a b c d ");
  EXPECT_EQ(pages("limit=2&sort=connected_at").first, "a b c d ");
}

TEST_F(FleetEndpointTest, APageHoldsNothingOutOfReach) {
  for (const char* id : {"edge-1", "edge-3"})
    add(id, true);
  boost::json::value page = json_of(get("/api/fleet?limit=9", std::string(scoped_operator_token)));
  EXPECT_EQ(page.at("total").as_int64(), 1);
  EXPECT_EQ(page.at("agents").as_array().size(), 1u);
}

TEST_F(FleetEndpointTest, QuestionsThatMeanNothingAreRefused) {
  for (const char* query : {"limit=0", "limit=1001", "limit=x", "limit=5&sort=age", "limit=5&cursor=zz",
                            "limit=5&cursor=00", "limit=5&status=gone", "sort=id", "cursor=00", "color=red"})
    EXPECT_EQ(problem_code(get("/api/fleet?" + std::string(query)), 400), "invalid_query") << query;
  add("a", true);
  add("b", true);
  std::string cursor(json_of(get("/api/fleet?limit=1&sort=os")).at("next_cursor").as_string());
  EXPECT_EQ(problem_code(get("/api/fleet?limit=1&sort=id&cursor=" + cursor), 400), "invalid_query");
}

TEST_F(FleetEndpointTest, TheStatusCanShowAPageToo) {
  for (const char* id : {"a", "b", "c"})
    add(id, true);
  boost::json::value first = json_of(get("/api/status?limit=2"));
  EXPECT_EQ(first.at("agents").as_array().size(), 2u);
  EXPECT_EQ(first.at("counts").at("total").as_int64(), 3);
  boost::json::value last = json_of(get("/api/status?limit=2&cursor=" + std::string(text_at(first, "next_cursor"))));
  EXPECT_EQ(text_at(last.at("agents").as_array().at(0), "id"), "c");
  EXPECT_FALSE(last.as_object().contains("next_cursor"));
  EXPECT_EQ(problem_code(get("/api/status?limit=0"), 400), "invalid_query");
}

TEST_F(FleetEndpointTest, ToolsComeInPagesOfWholeAgents) {
  for (const char* id : {"a", "b", "c"}) {
    for (const char* tool : {"get_metrics", "run_command"})
      fleet.all_tools.push_back({id, tool, "", R"({"name":")" + std::string(tool) + "\"}"});
  }
  boost::json::value first = json_of(get("/api/tools?limit=3"));
  EXPECT_EQ(first.at("tools").as_array().size(), 4u);
  EXPECT_EQ(text_at(first, "next_cursor"), "b");
  boost::json::value last = json_of(get("/api/tools?limit=3&cursor=b"));
  EXPECT_EQ(text_at(last.at("tools").as_array().at(0), "name"), "c__get_metrics");
  EXPECT_TRUE(last.at("next_cursor").is_null());
  EXPECT_EQ(json_of(get("/api/tools?agent=b")).at("tools").as_array().size(), 2u);
}

}  // namespace
}  // namespace hive::rest::test
