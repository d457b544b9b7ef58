#pragma once

#include <memory>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "gateway/surfaces/rest/api.h"
#include "gateway/surfaces/rest/fakes.h"
#include "net/http/raw_client.h"
#include "net/http/server.h"
#include "protocol/document.h"

namespace hive::rest::test {

using net::http::test::body_of;
using net::http::test::header_of;
using net::http::test::RawClient;
using net::http::test::status_of;

inline const std::string admin_token = "admin-token-0123456789abcdef";
inline const std::string operator_token = "operator-token-0123456789abcdef";
inline const std::string reader_token = "reader-token-0123456789abcdef";
inline const std::string short_token = "tiny";
inline const std::string scoped_operator_token = "scoped-operator-token-0123456789";
inline const std::string scoped_admin_token = "scoped-admin-token-0123456789abc";

/// The REST surface behind the real HTTP server, above a fleet, a funnel and a log that the test controls.
class RestTest : public testing::Test {
 protected:
  RestTest() {
    config.auth_token = config::Secret(admin_token);
    config.tokens = {{config::Secret(operator_token), "operator", "", "tokens[0]"},
                     {config::Secret(reader_token), "read-only", "", "tokens[1]"},
                     {config::Secret(short_token), "read-only", "", "tokens[2]"}};
    config.scoped_tokens = {scoped("scoped_tokens[0]", scoped_operator_token, "operator"),
                            scoped("scoped_tokens[1]", scoped_admin_token, "admin")};
    config.http_addr = "gateway.example:8443";
    config.allowed_origins = {"https://console.example:8443"};
    config.agent_tags = {{"edge-1", {"lab", "eu"}}};
    config.gateway_id = "gw-1";
  }

  /// A credential that reaches one tool of edge-1 and of what is tagged "eu".
  static config::ScopedToken scoped(std::string field, const std::string& token, std::string role) {
    config::ScopedToken made;
    made.credential = {config::Secret(token), std::move(role), "alice", std::move(field)};
    made.agents = {"edge-1"};
    made.tags = {"eu"};
    made.tools = {"get_*"};
    return made;
  }

  ~RestTest() override {
    runtime.stop();
    server.reset();
  }

  std::shared_ptr<const Settings> settings() {
    auto shared = std::make_shared<const config::GatewayConfig>(config);
    auto made = make_settings(shared, policy::make_policy(config, clock), {}, clock, identity_provider);
    EXPECT_TRUE(made) << made.error().message;
    return *made;
  }

  /// What calls go through; tests of the whole way put the real one here.
  virtual calls::Funnel& used_funnel() { return funnel; }

  void start() {
    funnel.current_policy = policy::make_policy(config, clock);
    fan_outs = calls::FanOuts::create(used_funnel(), fleet, &log, clock);
    Dependencies dependencies{.runtime = runtime,
                              .fleet = fleet,
                              .funnel = used_funnel(),
                              .fan_outs = *fan_outs,
                              .clock = clock,
                              .log = &log,
                              .approvals = with_state ? &approvals : nullptr,
                              .upstreams = with_state ? &upstreams : nullptr,
                              .enrolment = enrolment,
                              .host_key = "ssh-ed25519 AAAA gateway",
                              .read_audit = [this](const audit::Query& query) { return read_audit(query); },
                              .is_ready = [this] { return ready.load(); },
                              .configuration = with_state ? &configuration : nullptr,
                              .mcp = mcp};
    api = Api::create(std::move(dependencies), settings());
    auto made = net::http::Server::listen(runtime, {.listen_address = "127.0.0.1:0"}, api->handler());
    ASSERT_TRUE(made) << made.error().message;
    server = *std::move(made);
    runtime.start();
  }

  static std::string request_text(std::string_view method, std::string_view target, std::string_view token,
                                  std::string_view headers = "", std::string_view body = "") {
    std::string text = std::string(method) + " " + std::string(target) + " HTTP/1.1\r\nHost: 127.0.0.1\r\n";
    if (!token.empty()) text += "Authorization: Bearer " + std::string(token) + "\r\n";
    text += headers;
    if (!body.empty()) text += "Content-Length: " + std::to_string(body.size()) + "\r\n";
    text += "\r\n";
    return text += body;
  }

  /// Starts the surface if need be, sends one request and returns the response.
  std::string send(std::string_view method, std::string_view target, std::string_view token,
                   std::string_view headers = "", std::string_view body = "") {
    if (!server) start();
    RawClient client(server->port());
    client.send(request_text(method, target, token, headers, body));
    return client.read_response();
  }
  std::string get(std::string_view target, std::string_view token = admin_token, std::string_view headers = "") {
    return send("GET", target, token, headers);
  }
  std::string call(std::string_view body, std::string_view token = operator_token, std::string_view headers = "") {
    return send("POST", "/api/call", token, headers, body);
  }

  static boost::json::value json_of(std::string_view response) {
    auto parsed = json::parse(body_of(response));
    EXPECT_TRUE(parsed) << response;
    return parsed ? *parsed : boost::json::value();
  }
  static std::string text_at(const boost::json::value& value, std::string_view key) {
    const auto* member = value.is_object() ? value.as_object().if_contains(key) : nullptr;
    return member != nullptr && member->is_string() ? std::string(member->as_string()) : std::string();
  }

  /// Expects an application/problem+json with all members, and returns its code.
  static std::string problem_code(const std::string& response, unsigned status) {
    EXPECT_EQ(status_of(response), status) << response;
    EXPECT_EQ(header_of(response, "Content-Type"), "application/problem+json") << response;
    boost::json::value body = json_of(response);
    for (const char* key : {"type", "title", "code", "detail", "request_id"})
      EXPECT_NE(text_at(body, key), "") << key << " in " << response;
    EXPECT_EQ(text_at(body, "request_id"), header_of(response, "Myrmex-Request-Id"));
    return text_at(body, "code");
  }

  static calls::CallResult success(std::string body) {
    calls::CallResult result;
    result.outcome = protocol::Outcome::success;
    result.body = std::move(body);
    return result;
  }
  static calls::CallResult refusal(std::string reason, protocol::Outcome outcome = protocol::Outcome::denied) {
    calls::CallResult result;
    result.outcome = outcome;
    result.reason = reason;
    result.is_error = true;
    result.by_gateway = true;
    result.body = R"({"code":-32603,"message":"because )" + reason + R"("})";
    return result;
  }

  template <class Condition>
  static bool eventually(Condition condition) {
    auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (!condition()) {
      if (std::chrono::steady_clock::now() > end) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return true;
  }

  ManualClock clock;
  config::GatewayConfig config;
  FakeFleet fleet;
  FakeFunnel funnel;
  std::unique_ptr<calls::FanOuts> fan_outs;
  FakeLog log;
  FakeApprovals approvals;
  FakeConfigurationStore configuration;
  FakeUpstreams upstreams;
  fleet::Enrolment* enrolment = nullptr;
  bool with_state = true;
  McpEndpoint* mcp = nullptr;
  std::atomic<bool> ready = true;
  std::function<Result<audit::Page>(const audit::Query&)> read_audit = [](const audit::Query&) {
    return Result<audit::Page>(audit::Page());
  };
  net::Runtime runtime{2};
  std::shared_ptr<oidc::Provider> identity_provider;  ///< for settings()
  std::shared_ptr<Api> api;
  std::unique_ptr<net::http::Server> server;
};

}  // namespace hive::rest::test
