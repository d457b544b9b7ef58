#include "gateway/surfaces/rest/rest_fixture.h"

namespace hive::rest::test {
namespace {

TEST_F(RestTest, WithoutACredentialTheAnswerSaysHowToSendOne) {
  std::string response = get("/api/status", "");
  EXPECT_EQ(problem_code(response, 401), "missing_credentials");
  EXPECT_EQ(header_of(response, "WWW-Authenticate"), R"(Bearer realm="myrmex-hive")");
}

TEST_F(RestTest, AWrongTokenIsRefusedAndNeverRepeated) {
  std::string response = get("/api/status", "wrong-token-0123456789abcdef");
  EXPECT_EQ(problem_code(response, 401), "unknown_token");
  EXPECT_NE(header_of(response, "WWW-Authenticate").find("invalid_token"), std::string::npos);
  EXPECT_EQ(response.find("wrong-token"), std::string::npos);
  for (const audit::Record& record : log.records())
    EXPECT_EQ(record.detail.find("wrong-token"), std::string::npos);
}

TEST_F(RestTest, AnotherSchemeAndABrokenHeaderAreRefused) {
  EXPECT_EQ(problem_code(get("/api/status", "", "Authorization: Basic eDp5\r\n"), 401), "unsupported_scheme");
  EXPECT_EQ(problem_code(get("/api/status", "", "Authorization: Bearer\r\n"), 401), "malformed_credentials");
  // Two different readers could each take another one.
  EXPECT_EQ(problem_code(get("/api/status", admin_token, "Authorization: Bearer x\r\n"), 401), "missing_credentials");
}

TEST_F(RestTest, ATokenInTheUrlIsNoCredential) {
  EXPECT_EQ(status_of(get("/api/status?token=" + admin_token, "")), 400u);
}

TEST_F(RestTest, WhoamiNamesPrincipalRoleAndTime) {
  boost::json::value body = json_of(get("/api/whoami", operator_token));
  EXPECT_EQ(text_at(body, "role"), "operator");
  EXPECT_EQ(text_at(body, "principal").substr(0, 6), "token:");
  EXPECT_EQ(text_at(body, "principal").size(), 18u);
  EXPECT_EQ(text_at(body, "time"), format_rfc3339(clock.wall_now()));
  EXPECT_EQ(text_at(body, "gateway"), "gw-1");
}

TEST_F(RestTest, FailuresAreSummedUpInTheLogBySourceAndMinute) {
  for (int i = 0; i < 10; ++i)
    get("/api/status", "wrong");
  ASSERT_EQ(log.records().size(), 1u);
  EXPECT_EQ(log.records()[0].action, "authentication_failed");
  EXPECT_EQ(log.records()[0].detail, "once from 127.0.0.1");
  clock.advance(std::chrono::seconds(61));
  get("/api/status", admin_token);
  ASSERT_EQ(log.records().size(), 2u);
  EXPECT_EQ(log.records()[1].detail, "9 times from 127.0.0.1");
}

TEST_F(RestTest, WhatIsNotInTheLogYetIsWrittenAtTheEnd) {
  for (int i = 0; i < 3; ++i)
    get("/api/status", "wrong");
  api->flush();
  ASSERT_EQ(log.records().size(), 2u);
  EXPECT_EQ(log.records()[1].detail, "2 times from 127.0.0.1");
}

TEST_F(RestTest, AfterManyFailuresASourceMustWait) {
  for (int i = 0; i < 20; ++i)
    EXPECT_EQ(status_of(get("/api/status", "wrong")), 401u);
  std::string response = get("/api/status", "wrong");
  EXPECT_EQ(problem_code(response, 429), "too_many_failures");
  EXPECT_NE(header_of(response, "Retry-After"), "");
  // Not even a right guess shows, and a token that nobody can guess still works.
  EXPECT_EQ(status_of(get("/api/status", short_token)), 429u);
  EXPECT_EQ(status_of(get("/api/status", admin_token)), 200u);
  clock.advance(std::chrono::seconds(61));
  EXPECT_EQ(status_of(get("/api/status", short_token)), 200u);
}

TEST_F(RestTest, ForeignHostsAreRefused) {
  start();
  auto status_with_host = [&](std::string_view host) {
    RawClient client(server->port());
    client.send("GET /api/status HTTP/1.1\r\nHost: " + std::string(host) + "\r\nAuthorization: Bearer " + admin_token +
                "\r\n\r\n");
    return status_of(client.read_response());
  };
  for (const char* host :
       {"evil.example", "0.0.0.0:8080", "", "127.0.0.1.evil.example", "127.0.0.1:x", "[::1", "10.0.0.1"})
    EXPECT_EQ(status_with_host(host), 403u) << host;
  for (const char* host : {"127.0.0.1", "127.0.0.1:9", "localhost:8443", "LOCALHOST", "[::1]:8080", "gateway.example",
                           "gateway.example.:8443", "console.example"})
    EXPECT_EQ(status_with_host(host), 200u) << host;
}

TEST_F(RestTest, ForeignOriginsAreRefused) {
  for (const char* origin : {"null", "http://localhost.evil.com", "https://evil.example", "http://console.example:8443",
                             "https://console.example", "https://127.0.0.1", "http://127.0.0.1:1"}) {
    EXPECT_EQ(problem_code(get("/api/status", admin_token, "Origin: " + std::string(origin) + "\r\n"), 403),
              "unknown_origin")
        << origin;
  }
  EXPECT_EQ(status_of(get("/api/status", admin_token, "Origin: http://127.0.0.1\r\n")), 200u);
}

TEST_F(RestTest, TheAbsoluteFormsHostCounts) {
  EXPECT_EQ(problem_code(get("http://evil.example/api/status"), 403), "unknown_host");
  EXPECT_EQ(status_of(get("http://localhost/api/status")), 200u);
}

TEST_F(RestTest, HealthAnswersWhateverHostAProbeNames) {
  start();
  RawClient client(server->port());
  client.send("GET /healthz HTTP/1.1\r\nHost: pod-17\r\n\r\n");
  std::string response = client.read_response();
  EXPECT_EQ(status_of(response), 200u);
  EXPECT_EQ(body_of(response), "{\"status\":\"ok\"}\n");
}

TEST_F(RestTest, AnAllowedOriginMayReadTheAnswer) {
  std::string_view origin = "Origin: https://console.example:8443\r\n";
  std::string response = get("/api/status", admin_token, origin);
  EXPECT_EQ(status_of(response), 200u);
  EXPECT_EQ(header_of(response, "Access-Control-Allow-Origin"), "https://console.example:8443");
  EXPECT_EQ(header_of(response, "Vary"), "Origin");
  response = send("OPTIONS", "/api/call", "", origin);
  EXPECT_EQ(status_of(response), 204u);
  EXPECT_EQ(header_of(response, "Access-Control-Allow-Headers"), "Content-Type, Authorization");
  EXPECT_EQ(header_of(response, "Access-Control-Allow-Methods"), "GET, POST, OPTIONS");
  EXPECT_EQ(header_of(get("/api/status"), "Access-Control-Allow-Origin"), "");
}

TEST_F(RestTest, AnswersCarryTheSecurityHeaders) {
  std::string response = get("/api/status");
  EXPECT_EQ(header_of(response, "X-Content-Type-Options"), "nosniff");
  EXPECT_EQ(header_of(response, "Cache-Control"), "no-store");
  EXPECT_NE(header_of(response, "Content-Security-Policy").find("default-src 'none'"), std::string::npos);
}

TEST_F(RestTest, ReadinessFollowsTheGateway) {
  EXPECT_EQ(body_of(get("/readyz", "")), "{\"status\":\"ready\"}\n");
  ready = false;
  std::string response = get("/readyz", "");
  EXPECT_EQ(status_of(response), 503u);
  EXPECT_EQ(body_of(response), "{\"status\":\"not-ready\"}\n");
}

TEST_F(RestTest, AReloadChangesTokensForTheNextRequest) {
  start();
  EXPECT_EQ(status_of(get("/api/status", operator_token)), 200u);
  config.tokens.clear();
  api->apply(settings());
  EXPECT_EQ(status_of(get("/api/status", operator_token)), 401u);
  EXPECT_EQ(status_of(get("/api/status", admin_token)), 200u);
}

TEST_F(RestTest, ReloadsAndRequestsDoNotDisturbEachOther) {
  start();
  std::atomic<bool> stop = false;
  std::thread reloader([&] {
    while (!stop)
      api->apply(settings());
  });
  for (int i = 0; i < 200; ++i)
    EXPECT_EQ(status_of(get("/api/status")), 200u);
  stop = true;
  reloader.join();
}

}  // namespace
}  // namespace hive::rest::test
