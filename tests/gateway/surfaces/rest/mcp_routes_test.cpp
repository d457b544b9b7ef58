// How requests reach the MCP surface: its paths, who may use them, and what browsers and OAuth clients are told.

#include "gateway/surfaces/rest/mcp_endpoint.h"
#include "gateway/surfaces/rest/rest_fixture.h"

namespace hive::rest::test {
namespace {

/// Answers with what reached it.
class FakeEndpoint final : public McpEndpoint {
 public:
  void serve(McpRequest request) override {
    net::http::Response response;
    response.headers = request.headers;
    response.headers.emplace_back("Seen",
                                  fmt::format("{} {} {} {}", request.request->method, calls::to_string(request.surface),
                                              request.principal.identity(), request.is_still_admitted()));
    request.record_refusal("foreign_session", "a session of somebody else");
    request.responder->respond(std::move(response));
  }
};

class McpRoutesTest : public RestTest {
 protected:
  McpRoutesTest() { mcp = &endpoint; }

  static std::string seen(const std::string& response) { return header_of(response, "Seen"); }

  FakeEndpoint endpoint;
};

TEST_F(McpRoutesTest, EachPathReachesTheEndpointWithItsCaller) {
  std::string who = "alice true";
  EXPECT_EQ(seen(send("POST", "/mcp", scoped_operator_token)), "POST mcp-http " + who);
  EXPECT_EQ(seen(send("GET", "/mcp", scoped_operator_token)), "GET mcp-http " + who);
  EXPECT_EQ(seen(send("DELETE", "/mcp", scoped_operator_token)), "DELETE mcp-http " + who);
  EXPECT_EQ(seen(send("GET", "/sse", scoped_operator_token)), "GET mcp-sse " + who);
  EXPECT_EQ(seen(send("POST", "/message?session_id=1", scoped_operator_token)), "POST mcp-sse " + who);
  std::string response = send("POST", "/mcp/", reader_token);
  EXPECT_EQ(status_of(response), 200u) << "the slash at the end changes nothing";
  EXPECT_NE(header_of(response, "Myrmex-Request-Id"), "");
}

TEST_F(McpRoutesTest, ACredentialThatIsNotWorthTheSameAnyMoreIsNotAdmitted) {
  start();
  std::function<bool()> ask;
  struct Keeper final : McpEndpoint {
    std::function<bool()>& ask;
    explicit Keeper(std::function<bool()>& into) : ask(into) {}
    void serve(McpRequest request) override {
      ask = request.is_still_admitted;
      request.responder->respond({});
    }
  } keeper(ask);
  mcp = &keeper;
  runtime.stop();
  server.reset();
  net::Runtime second(1);
  Dependencies dependencies{
      .runtime = second, .fleet = fleet, .funnel = funnel, .fan_outs = *fan_outs, .clock = clock, .mcp = mcp};
  api = Api::create(std::move(dependencies), settings());
  auto made = net::http::Server::listen(second, {.listen_address = "127.0.0.1:0"}, api->handler());
  ASSERT_TRUE(made) << made.error().message;
  second.start();
  RawClient client((*made)->port());
  client.send(request_text("GET", "/sse", operator_token));
  EXPECT_EQ(status_of(client.read_response()), 200u);
  EXPECT_TRUE(ask());
  api->apply(settings());
  EXPECT_TRUE(ask()) << "another configuration, but the same right";
  config.tokens[0].role = "read-only";
  api->apply(settings());
  EXPECT_FALSE(ask());
  config.tokens.erase(config.tokens.begin());
  api->apply(settings());
  EXPECT_FALSE(ask());
  client.send(request_text("GET", "/sse", scoped_operator_token));
  EXPECT_EQ(status_of(client.read_response()), 200u);
  EXPECT_TRUE(ask());
  config.scoped_tokens[0].tools = {"get_metrics"};
  api->apply(settings());
  EXPECT_FALSE(ask());
  second.stop();
}

TEST_F(McpRoutesTest, WithoutTheSurfaceItsPathsAreNotFound) {
  mcp = nullptr;
  for (const char* path : {"/mcp", "/mcp/", "/sse"})
    EXPECT_EQ(problem_code(get(path), 404), "not_found") << path;
}

TEST_F(McpRoutesTest, HeadHasNoStreamToShow) {
  start();
  for (const char* path : {"/mcp", "/sse"}) {
    RawClient client(server->port());
    client.send(request_text("HEAD", path, admin_token, "Connection: close\r\n"));
    EXPECT_EQ(status_of(client.read_all()), 405u) << path;
  }
}

TEST_F(McpRoutesTest, RefusalsOfTheEndpointAreRecorded) {
  std::string response = send("POST", "/mcp", scoped_operator_token);
  std::vector<audit::Record> records = log.records();
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(records[0].action, "access_denied");
  EXPECT_EQ(records[0].surface, "mcp-http");
  EXPECT_EQ(records[0].reason, "foreign_session");
  EXPECT_EQ(records[0].request_id, header_of(response, "Myrmex-Request-Id"));
}

TEST_F(McpRoutesTest, ForeignHostsAndOriginsAreRefusedBeforeAnythingElse) {
  start();
  auto ask = [&](const std::string& headers) {
    RawClient client(server->port());
    client.send("POST /mcp HTTP/1.1\r\nAuthorization: Bearer " + admin_token + "\r\n" + headers + "\r\n");
    return client.read_response();
  };
  for (const char* headers :
       {"Host: evil.example.com\r\n", "Host: 0.0.0.0:8080\r\n", "Host: 127.0.0.1\r\nOrigin: null\r\n",
        "Host: 127.0.0.1\r\nOrigin: http://localhost.evil.com\r\n",
        "Host: evil.example.com\r\nOrigin: http://evil.example.com\r\n"})
    EXPECT_EQ(status_of(ask(headers)), 403u) << headers;
  for (const char* headers : {"Host: [::1]:8080\r\n", "Host: 127.0.0.1:1\r\nOrigin: http://127.0.0.1:1\r\n"})
    EXPECT_EQ(status_of(ask(headers)), 200u) << headers;
}

TEST_F(McpRoutesTest, ATokenInTheUrlIsRefusedWithTheRemedy) {
  for (const char* path : {"/sse?token=abc", "/message?session_id=1&token=abc", "/mcp?access_token=abc"}) {
    std::string response = send(std::string_view(path).starts_with("/sse") ? "GET" : "POST", path, admin_token);
    EXPECT_EQ(problem_code(response, 400), "invalid_query");
    EXPECT_NE(response.find("Authorization: Bearer TOKEN"), std::string::npos) << response;
    EXPECT_EQ(response.find("abc"), std::string::npos) << response;
  }
}

TEST_F(McpRoutesTest, BrowsersOfAllowedOriginsMaySendTheHeadersOfTheProtocol) {
  std::string origin = "Origin: https://console.example:8443\r\n";
  std::string response = send("OPTIONS", "/mcp", "",
                              origin + "Access-Control-Request-Headers: Mcp-Param-Region, x-other, mcp-param-a b\r\n");
  EXPECT_EQ(status_of(response), 204u);
  EXPECT_EQ(header_of(response, "Access-Control-Allow-Methods"), "GET, POST, DELETE, OPTIONS");
  std::string allowed = header_of(response, "Access-Control-Allow-Headers");
  for (const char* name : {"Mcp-Session-Id", "Mcp-Protocol-Version", "Mcp-Method", "Mcp-Name", "Last-Event-ID",
                           "Mcp-Param-Region", "Authorization"})
    EXPECT_NE(allowed.find(name), std::string::npos) << name << allowed;
  EXPECT_EQ(allowed.find("x-other"), std::string::npos);
  EXPECT_EQ(allowed.find("a b"), std::string::npos);
  response = send("POST", "/mcp", admin_token, origin);
  EXPECT_NE(header_of(response, "Access-Control-Expose-Headers").find("Mcp-Session-Id"), std::string::npos);
  response = send("OPTIONS", "/api/status", "", origin);
  EXPECT_EQ(header_of(response, "Access-Control-Allow-Headers"), "Content-Type, Authorization");
}

TEST_F(McpRoutesTest, OAuthClientsLearnWhereTokensComeFrom) {
  config.oidc_issuer = "https://id.example/realm";
  config.oidc_audience = "hive";
  std::string response = send("POST", "/mcp", "");
  EXPECT_EQ(problem_code(response, 401), "missing_credentials");
  EXPECT_NE(header_of(response, "WWW-Authenticate")
                .find(R"(resource_metadata="http://127.0.0.1/.well-known/oauth-protected-resource/mcp")"),
            std::string::npos)
      << response;
  EXPECT_EQ(header_of(get("/api/status", ""), "WWW-Authenticate").find("resource_metadata"), std::string::npos);
  boost::json::value metadata = json_of(get("/.well-known/oauth-protected-resource/mcp", ""));
  EXPECT_EQ(text_at(metadata, "resource"), "http://127.0.0.1/mcp");
  EXPECT_EQ(metadata.at("authorization_servers"), (boost::json::array{"https://id.example/realm"}));
  EXPECT_EQ(metadata.at("bearer_methods_supported"), boost::json::array{"header"});
  EXPECT_EQ(text_at(json_of(get("/.well-known/oauth-protected-resource", "")), "resource"), "http://127.0.0.1");
}

TEST_F(McpRoutesTest, TheResourceHasTheUrlUnderWhichAProxyShowsIt) {
  config.oidc_issuer = "https://id.example";
  config.oidc_audience = "hive";
  start();
  auto ask = [&](const std::string& host) {
    RawClient client(server->port());
    client.send("GET /.well-known/oauth-protected-resource/mcp HTTP/1.1\r\nHost: " + host + "\r\n\r\n");
    return client.read_response();
  };
  EXPECT_EQ(text_at(json_of(ask("Console.Example:8443")), "resource"), "https://console.example:8443/mcp");
  EXPECT_EQ(problem_code(ask("evil.example"), 403), "unknown_host");
}

TEST_F(McpRoutesTest, WithoutAnIdentityProviderThereIsNothingToLearn) {
  EXPECT_EQ(problem_code(get("/.well-known/oauth-protected-resource/mcp", ""), 404), "not_found");
  EXPECT_EQ(header_of(send("POST", "/mcp", ""), "WWW-Authenticate").find("resource_metadata"), std::string::npos);
}

}  // namespace
}  // namespace hive::rest::test
