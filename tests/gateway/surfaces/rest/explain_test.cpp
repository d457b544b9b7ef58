#include "gateway/surfaces/rest/explain_request.h"
#include "gateway/surfaces/rest/rest_fixture.h"

namespace hive::rest::test {
namespace {

class ExplainRouteTest : public RestTest {
 protected:
  std::string explain(std::string_view body, std::string_view token = operator_token) {
    return send("POST", "/api/explain", token, "", body);
  }
};

TEST_F(ExplainRouteTest, EachGateHasItsWord) {
  funnel.explanation.verdict = policy::Verdict::deny;
  funnel.explanation.reason = "scope";
  funnel.explanation.tier = protocol::Tier::admin;
  funnel.explanation.tier_rule = "gateway.json:9: risk_tiers.run_command:reboot";
  policy::Decision refused;
  refused.verdict = policy::Verdict::deny;
  refused.reason = "scope";
  refused.message = "not \"yours\"";
  refused.rule = "gateway.json:7: scoped_tokens[0]";
  funnel.explanation.gates = {{"role", policy::Decision::allow()}, {"scope", refused}};
  std::string response = explain(R"({"name":"edge-1__run_command","arguments":{ "name":"reboot" }})");
  ASSERT_EQ(status_of(response), 200u) << response;
  EXPECT_EQ(
      body_of(response),
      R"({"verdict":"deny","reason":"scope","tier":"admin","tier_rule":"gateway.json:9: risk_tiers.run_command:reboot",)"
      R"("gates":[{"gate":"role","verdict":"allow","reason":"","message":"","rule":""},)"
      R"({"gate":"scope","verdict":"deny","reason":"scope","message":"not \"yours\"","rule":"gateway.json:7: scoped_tokens[0]"}]})"
      "\n");
  std::vector<calls::Call> asked = funnel.explained();
  ASSERT_EQ(asked.size(), 1u);
  EXPECT_EQ(asked[0].agent, "edge-1");
  EXPECT_EQ(asked[0].tool, "run_command");
  EXPECT_EQ(asked[0].arguments, R"({ "name":"reboot" })");
  EXPECT_EQ(asked[0].principal.role, policy::Role::operator_);
  EXPECT_EQ(asked[0].request_id, header_of(response, "Myrmex-Request-Id"));
  EXPECT_EQ(funnel.count(), 0u);
}

TEST_F(ExplainRouteTest, EverybodyMayAskAboutTheirOwnCredential) {
  for (const std::string& token : {admin_token, operator_token, reader_token, scoped_operator_token})
    EXPECT_EQ(status_of(explain(R"({"name":"a__t"})", token)), 200u);
  std::vector<calls::Call> asked = funnel.explained();
  ASSERT_EQ(asked.size(), 4u);
  EXPECT_EQ(asked[2].principal.role, policy::Role::read_only);
  ASSERT_NE(asked[3].principal.scope(), nullptr);
  EXPECT_EQ(asked[3].principal.scope()->field, "scoped_tokens[0]");
}

TEST_F(ExplainRouteTest, AnAdminMayAskAboutOthersAndStaysWhoAsks) {
  std::string own = text_at(json_of(get("/api/whoami")), "principal");
  EXPECT_EQ(
      status_of(explain(
          R"({"name":"a__t","as":{"role":"operator","identity":"bob","groups":["dba"],"tags":["eu"],"tools":["get_*"]}})",
          admin_token)),
      200u);
  std::vector<calls::Call> asked = funnel.explained();
  ASSERT_EQ(asked.size(), 1u);
  const policy::Principal& subject = asked[0].principal;
  EXPECT_EQ(subject.name, own);
  EXPECT_EQ(subject.role, policy::Role::operator_);
  EXPECT_EQ(subject.identity(), "bob");
  EXPECT_EQ(subject.grant->groups, std::vector<std::string>{"dba"});
  ASSERT_NE(subject.scope(), nullptr);
  EXPECT_TRUE(subject.scope()->agents.empty());
  EXPECT_EQ(subject.scope()->tags, std::vector<std::string>{"eu"});
  EXPECT_EQ(subject.scope()->tools, std::vector<std::string>{"get_*"});
}

TEST_F(ExplainRouteTest, AnEmptyScopeReachesNothingAndAnAbsentOneEverything) {
  auto scope_of = [](std::string_view as) {
    auto request = parse_explain_request(R"({"name":"a__t","as":)" + std::string(as) + "}");
    EXPECT_TRUE(request) << request.error().message;
    return request->subject->grant->scope;
  };
  EXPECT_FALSE(scope_of(R"({"role":"admin"})"));
  auto tools_only = scope_of(R"({"role":"admin","tools":["x"]})");
  EXPECT_EQ(tools_only->agents, std::vector<std::string>{"*"});
  auto nothing = scope_of(R"({"role":"admin","agents":[]})");
  EXPECT_TRUE(nothing->agents.empty() && nothing->tags.empty());
  EXPECT_EQ(nothing->tools, std::vector<std::string>{"*"});
}

TEST_F(ExplainRouteTest, OthersThanUnscopedAdminsMayNotAskAboutOthers) {
  std::string_view body = R"({"name":"a__t","as":{"role":"admin"}})";
  EXPECT_EQ(problem_code(explain(body, operator_token), 403), "role");
  EXPECT_EQ(problem_code(explain(body, reader_token), 403), "role");
  EXPECT_EQ(problem_code(explain(body, scoped_admin_token), 403), "scope");
  EXPECT_TRUE(funnel.explained().empty());
  ASSERT_EQ(log.records().size(), 3u);
  EXPECT_EQ(log.records()[0].action, "access_denied");
  EXPECT_EQ(log.records()[0].reason, "role");
  EXPECT_EQ(log.records()[2].reason, "scope");
}

TEST_F(ExplainRouteTest, QuestionsThatMakeNoSenseAreRefused) {
  for (const char* body :
       {"", "[]", "{}", R"({"name":""})", R"({"name":"a__t","arguments":[]})", R"({"name":"a__t","as":"admin"})",
        R"({"name":"a__t","as":{}})", R"({"name":"a__t","as":{"role":"root"}})", R"({"name":"a__t","timeout_ms":1})",
        R"({"name":"a__t","as":{"role":"admin","agent":["x"]}})",
        R"({"name":"a__t","as":{"role":"admin","tags":"eu"}})", R"({"name":"a__t","as":{"role":"admin","tags":[1]}})"})
    EXPECT_EQ(problem_code(explain(body, admin_token), 400), "invalid_request") << body;
  std::string many = R"({"name":"a__t","as":{"role":"admin","tags":["")";
  for (int i = 0; i < 300; ++i)
    many += R"(,"x")";
  EXPECT_EQ(problem_code(explain(many + "]}}", admin_token), 400), "invalid_request");
}

}  // namespace
}  // namespace hive::rest::test
