#include <set>

#include "gateway/surfaces/rest/rest_fixture.h"
#include "gateway/surfaces/rest/route.h"
#include "net/http/ascii.h"

namespace hive::rest::test {
namespace {

TEST(Routes, EachIsPublicOrNamesItsRoles) {
  for (const Route& route : routes()) {
    EXPECT_NE(route.is_public, !route.roles.empty()) << route.path;
    EXPECT_NE(route.handler, nullptr) << route.path;
    EXPECT_FALSE(route.summary.empty()) << route.path;
  }
}

TEST(Routes, OnlyHealthIsPublicAndEnrolmentWhichHasItsOwnCredentialAndWhereTokensComeFrom) {
  std::set<std::string_view> open;
  for (const Route& route : routes()) {
    if (route.is_public) open.insert(route.path);
  }
  EXPECT_EQ(open, (std::set<std::string_view>{"/.well-known/oauth-protected-resource",
                                              "/.well-known/oauth-protected-resource/mcp", "/api/enroll", "/healthz",
                                              "/readyz"}));
}

TEST(Routes, NoneStandsTwiceInTheTable) {
  std::set<std::pair<std::string_view, std::string_view>> seen;
  for (const Route& route : routes())
    EXPECT_TRUE(seen.emplace(route.method, route.path).second) << route.path;
}

TEST(Routes, AnAdminMayUseEveryRoute) {
  for (const Route& route : routes())
    EXPECT_TRUE(route.is_public || route.roles.contains(policy::Role::admin)) << route.path;
}

TEST(Routes, ASegmentInBracesStandsForAnyOneSegment) {
  const Route* one = find_route("GET", "/api/approvals/0123");
  ASSERT_NE(one, nullptr);
  EXPECT_EQ(one->path, "/api/approvals/{id}");
  EXPECT_EQ(path_parameter_name(*one), "id");
  EXPECT_EQ(path_parameter("/api/approvals/0123"), "0123");
  const Route* result = find_route("HEAD", "/api/approvals/0123/result");
  ASSERT_NE(result, nullptr);
  EXPECT_EQ(result->path, "/api/approvals/{id}/result");
  EXPECT_EQ(path_parameter("/api/approvals/0123/result"), "0123");
  for (const char* path : {"/api/approvals/", "/api/approvals//result", "/api/approvals/1/", "/api/approvals/1/result/",
                           "/api/approvals/1/other", "/api/approvals/1/2/result", "api/approvals/1"})
    EXPECT_EQ(find_route("GET", path), nullptr) << path;
  EXPECT_EQ(path_parameter("/api/approvals"), "");
  EXPECT_EQ(path_parameter("/api/status"), "");
  EXPECT_EQ(find_route("GET", "/api/approvals")->path, "/api/approvals");
  EXPECT_EQ(find_route("POST", "/api/approvals/0123"), nullptr);
  EXPECT_EQ(allowed_methods("/api/approvals/0123"), "GET, HEAD, OPTIONS");
  EXPECT_EQ(allowed_methods("/api/approvals"), "GET, HEAD, POST, OPTIONS");
}

TEST(Routes, TheOpenApiDocumentHasEachOfThem) {
  auto document = json::parse(openapi_document());
  ASSERT_TRUE(document) << document.error().message;
  const auto& paths = document->at("paths").as_object();
  for (const Route& route : routes()) {
    ASSERT_TRUE(paths.contains(route.path)) << route.path;
    const auto& operations = paths.at(route.path).as_object();
    ASSERT_TRUE(operations.contains(net::http::to_lower(route.method))) << route.path;
    const auto& operation = operations.at(net::http::to_lower(route.method)).as_object();
    EXPECT_EQ(operation.at("security").as_array().empty(), route.is_public) << route.path;
    EXPECT_EQ(operation.contains("requestBody"), !route.request_schema.empty()) << route.path;
    std::size_t parameters = route.parameters.size() + (path_parameter_name(route).empty() ? 0 : 1);
    EXPECT_EQ(operation.contains("parameters") ? operation.at("parameters").as_array().size() : 0, parameters);
  }
}

TEST_F(RestTest, EachRouteThatIsNotPublicNeedsACredential) {
  config.oidc_issuer = "https://id.example";
  config.oidc_audience = "hive";
  for (const Route& route : routes()) {
    std::string response = send(route.method, route.path, "");
    if (route.is_public) {
      EXPECT_EQ(status_of(response), route.request_schema.empty() ? 200U : 400U) << route.path;
    } else {
      EXPECT_EQ(problem_code(response, 401), "missing_credentials") << route.path;
    }
  }
}

TEST_F(RestTest, EachRouteRefusesTheRolesThatItDoesNotName) {
  for (const Route& route : routes()) {
    if (route.is_public || route.role_gate == RoleGate::funnel) continue;
    for (auto [role, token] :
         {std::pair(policy::Role::operator_, operator_token), std::pair(policy::Role::read_only, reader_token)}) {
      std::string response = send(route.method, route.path, token);
      if (route.roles.contains(role)) {
        EXPECT_NE(status_of(response), 403u) << route.path << response;
      } else {
        EXPECT_EQ(problem_code(response, 403), "role") << route.path;
      }
    }
  }
}

TEST_F(RestTest, ARefusedRoleIsRecorded) {
  std::string response = get("/api/audit", operator_token);
  EXPECT_EQ(problem_code(response, 403), "role");
  std::vector<audit::Record> records = log.records();
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(records[0].action, "access_denied");
  EXPECT_EQ(records[0].role, "operator");
  EXPECT_EQ(records[0].outcome, protocol::Outcome::denied);
  EXPECT_EQ(records[0].detail, "GET /api/audit");
  EXPECT_EQ(records[0].request_id, header_of(response, "Myrmex-Request-Id"));
}

TEST_F(RestTest, AnUnknownPathIsNotFound) {
  EXPECT_EQ(problem_code(get("/api/nothing"), 404), "not_found");
  EXPECT_EQ(problem_code(get("/api/status/"), 404), "not_found");
  EXPECT_EQ(problem_code(get("/"), 404), "not_found");
}

TEST_F(RestTest, AnotherMethodIsNotAllowedAndTheRightOnesAreNamed) {
  std::string response = get("/api/call");
  EXPECT_EQ(problem_code(response, 405), "method_not_allowed");
  EXPECT_EQ(header_of(response, "Allow"), "POST, OPTIONS");
  response = send("DELETE", "/api/status", admin_token);
  EXPECT_EQ(problem_code(response, 405), "method_not_allowed");
  EXPECT_EQ(header_of(response, "Allow"), "GET, HEAD, OPTIONS");
}

TEST_F(RestTest, OptionsNamesTheMethodsWithoutACredential) {
  std::string response = send("OPTIONS", "/api/call", "");
  EXPECT_EQ(status_of(response), 204u);
  EXPECT_EQ(header_of(response, "Allow"), "POST, OPTIONS");
  EXPECT_EQ(problem_code(send("OPTIONS", "/nothing", ""), 404), "not_found");
}

TEST_F(RestTest, HeadIsServedAsGet) {
  start();
  RawClient client(server->port());
  client.send(request_text("HEAD", "/healthz", "", "Connection: close\r\n"));
  std::string response = client.read_all();
  EXPECT_EQ(status_of(response), 200u);
  EXPECT_EQ(header_of(response, "Content-Length"), "16");
  EXPECT_EQ(body_of(response), "");
}

TEST_F(RestTest, AnUnknownQueryParameterIsRefusedWithTheNearestName) {
  std::string response = get("/api/fleet?agnet=edge-1");
  EXPECT_EQ(problem_code(response, 400), "invalid_query");
  EXPECT_NE(response.find(R"(did you mean \"agent\")"), std::string::npos) << response;
  EXPECT_EQ(problem_code(get("/api/status?token=x"), 400), "invalid_query");
}

TEST_F(RestTest, TheOpenApiDocumentIsServed) {
  std::string response = get("/api/openapi.json", reader_token);
  EXPECT_EQ(status_of(response), 200u);
  EXPECT_EQ(text_at(json_of(response), "openapi"), "3.1.0");
}

}  // namespace
}  // namespace hive::rest::test
