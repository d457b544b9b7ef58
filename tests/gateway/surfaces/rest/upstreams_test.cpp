#include <gmock/gmock.h>

#include "gateway/surfaces/rest/rest_fixture.h"

namespace hive::rest::test {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class RestUpstreamsTest : public RestTest {
 protected:
  RestUpstreamsTest() {
    upstreams::UpstreamStatus git;
    git.name = git.prefix = "git";
    git.transport = "stdio";
    git.url = "npx server-git";
    git.state = "connected";
    git.since = WallTime(std::chrono::seconds(1'800'000'000));
    git.revision = "2025-11-25";
    git.tools = 1;
    git.held_back = 1;
    git.notes = {"a note"};
    upstreams::UpstreamStatus edge = git;
    edge.name = edge.prefix = "edge-1";
    upstreams.all = {git, edge};
    upstreams.held = {{.upstream = "git",
                       .tool = "push",
                       .accepted_sha256 = std::string(64, 'a'),
                       .current_sha256 = std::string(64, 'b'),
                       .accepted_raw = R"({"name":"push"})",
                       .current_raw = R"({"name":"push","description":"\u001b[31mhostile"})"}};
    upstreams.offered.tools = {{"git", "pull", "git__pull", R"({"name":"pull","inputSchema":{"type":"object"}})"}};
  }

  static std::string body(std::string_view upstream = "git", std::string_view tool = "push", char digit = 'b') {
    return fmt::format(R"({{"upstream":"{}","tool":"{}","sha256":"{}"}})", upstream, tool, std::string(64, digit));
  }
  std::string accept(const std::string& text, std::string_view token = admin_token) {
    return send("POST", "/api/upstreams/accept", token, "", text);
  }
};

TEST_F(RestUpstreamsTest, StandInTheStatus) {
  auto status = json_of(get("/api/status", reader_token));
  const auto& servers = status.at("upstreams").as_array();
  ASSERT_EQ(servers.size(), 2U);
  EXPECT_EQ(text_at(servers[0], "name"), "git");
  EXPECT_EQ(text_at(servers[0], "url"), "npx server-git");
  EXPECT_EQ(text_at(servers[0], "status"), "connected");
  EXPECT_EQ(text_at(servers[0], "since"), "2027-01-15T08:00:00.000Z");
  EXPECT_EQ(servers[0].at("held_back").to_number<int>(), 1);
  EXPECT_FALSE(servers[0].as_object().contains("held_back_tools"));
}

TEST_F(RestUpstreamsTest, ShowBothDescriptionsOfAToolThatIsHeldBack) {
  auto shown = json_of(get("/api/upstreams", reader_token));
  const auto& git = shown.at("upstreams").as_array().at(0);
  const auto& tool = git.at("held_back_tools").as_array().at(0);
  EXPECT_EQ(text_at(tool, "tool"), "push");
  EXPECT_EQ(text_at(tool, "current_sha256"), std::string(64, 'b'));
  EXPECT_EQ(text_at(tool.at("accepted"), "name"), "push");
  EXPECT_EQ(text_at(tool.at("current"), "description"), "\x1b[31mhostile");
  EXPECT_EQ(git.at("notes").as_array().size(), 1U);
}

TEST_F(RestUpstreamsTest, AreSeenAsFarAsTheCredentialReaches) {
  auto shown = json_of(get("/api/upstreams", scoped_operator_token));
  ASSERT_EQ(shown.at("upstreams").as_array().size(), 1U);
  EXPECT_EQ(text_at(shown.at("upstreams").as_array().at(0), "name"), "edge-1");
  EXPECT_EQ(problem_code(accept(body(), scoped_admin_token), 403), "scope");
}

TEST_F(RestUpstreamsTest, OfferTheirToolsWithThoseOfTheAgents) {
  EXPECT_THAT(
      get("/api/tools", reader_token),
      HasSubstr(
          R"({"name":"git__pull","inputSchema":{"type":"object"},)"
          R"("annotations":{"readOnlyHint":false,"destructiveHint":true},"_meta":{"myrmex-hive/tier":"write"}})"));
  EXPECT_THAT(get("/api/tools", scoped_operator_token), Not(HasSubstr("git__pull")));
}

TEST_F(RestUpstreamsTest, HaveADescriptionAcceptedByAnAdminOnTheRecord) {
  std::string accepted;
  upstreams.verdict = [&](const std::string& upstream, const std::string& tool, const std::string& sha256) {
    accepted = upstream + " " + tool + " " + sha256;
    return Result<void>();
  };
  std::string answer = accept(body());
  EXPECT_EQ(status_of(answer), 200U) << answer;
  EXPECT_EQ(text_at(json_of(answer), "accepted_sha256"), std::string(64, 'b'));
  EXPECT_EQ(accepted, "git push " + std::string(64, 'b'));
  auto records = log.records();
  ASSERT_EQ(records.size(), 1U);
  EXPECT_EQ(records[0].action, "tool_accepted");
  EXPECT_EQ(records[0].agent, "git");
  EXPECT_EQ(records[0].tool, "push");
  EXPECT_EQ(records[0].role, "admin");
  EXPECT_EQ(records[0].detail, "sha256 " + std::string(64, 'b'));
  EXPECT_EQ(records[0].outcome, protocol::Outcome::success);
}

TEST_F(RestUpstreamsTest, RefuseWhatNobodyHasLookedAt) {
  upstreams.verdict = [](const std::string&, const std::string&, const std::string&) -> Result<void> {
    return fail(ErrorCode::already_exists, "it is described otherwise by now");
  };
  EXPECT_EQ(problem_code(accept(body()), 409), "description_changed");
  upstreams.verdict = [](const std::string&, const std::string&, const std::string&) -> Result<void> {
    return fail(ErrorCode::not_found, "nothing is held back");
  };
  EXPECT_EQ(problem_code(accept(body()), 404), "not_found");
  ASSERT_EQ(log.records().size(), 2U);
  EXPECT_EQ(log.records()[0].reason, "description_changed");
  EXPECT_EQ(log.records()[1].outcome, protocol::Outcome::denied);
}

TEST_F(RestUpstreamsTest, RefuseWhatIsNotExactlyARequest) {
  for (const char* bad : {"", "{}", R"({"upstream":"git","tool":"push","sha256":"abc"})",
                          R"({"upstream":"a__b","tool":"push","sha256":""})", R"({"upstream":"git","tool":""})"}) {
    EXPECT_EQ(problem_code(accept(bad), 400), "invalid_request") << bad;
  }
  std::string more = body();
  more.insert(1, R"("all":true,)");
  EXPECT_EQ(problem_code(accept(more), 400), "invalid_request");
  EXPECT_EQ(problem_code(accept(body(), operator_token), 403), "role");
}

TEST_F(RestUpstreamsTest, AreCalledByThePublicNameOfATool) {
  funnel.answer = [](const calls::Call&) { return success(R"({"content":[]})"); };
  fleet.agents.push_back({});
  fleet.agents.back().id = "edge-1";
  EXPECT_EQ(status_of(call(R"({"name":"git__pull"})")), 200U);
  EXPECT_EQ(status_of(call(R"({"name":"git__push"})")), 200U);
  EXPECT_EQ(status_of(call(R"({"name":"edge-1__pull"})")), 200U);
  ASSERT_EQ(funnel.count(), 3U);
  EXPECT_EQ(funnel.at(0)->call.target, calls::TargetKind::upstream);
  EXPECT_EQ(funnel.at(0)->call.agent, "git");
  EXPECT_EQ(funnel.at(0)->call.tool, "pull");
  EXPECT_EQ(funnel.at(1)->call.target, calls::TargetKind::upstream);
  EXPECT_EQ(funnel.at(1)->call.tool, "push");
  EXPECT_EQ(funnel.at(2)->call.target, calls::TargetKind::agent);
}

TEST_F(RestUpstreamsTest, AreNoneWithoutAStore) {
  with_state = false;
  EXPECT_THAT(json_of(get("/api/upstreams")).at("upstreams").as_array(), IsEmpty());
  EXPECT_EQ(problem_code(accept(body()), 404), "not_found");
}

}  // namespace
}  // namespace hive::rest::test
