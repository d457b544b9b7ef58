#include <future>

#include "gateway/oidc/signing_key.h"
#include "gateway/surfaces/rest/rest_fixture.h"

namespace hive::rest::test {
namespace {

const std::string proxy_secret = "proxy-secret-0123456789abcdef";

/// Keeps the answer to one request.
class Answer final : public net::http::Responder {
 public:
  void respond(net::http::Response response) override { response_.set_value(std::move(response)); }
  std::shared_ptr<net::http::Stream> respond_stream(net::http::Response) override { return nullptr; }
  void on_disconnect(net::Task) override {}
  net::http::Response get() { return response_.get_future().get(); }

 private:
  std::promise<net::http::Response> response_;
};

class IdentityTest : public RestTest {
 protected:
  IdentityTest() {
    config.client_ca_cert_path = "/etc/myrmex/clients.pem";
    config.mtls_cn_roles = {{"ops-console", "operator"}};
    config.trusted_proxy_secret = config::Secret(proxy_secret);
    config.trusted_proxy_secret_header = "x-proxy-secret";
    config.trusted_proxy_identity_header = "x-forwarded-user";
    config.trusted_proxy_role = "operator";
    config.trusted_proxy_addresses = {"10.0.0.1", "10.1.0.0/16"};
    config.oidc_issuer = "https://id.example";
    config.oidc_audience = "hive";
    config.oidc_role_map = {{"ops", "operator"}, {"admins", "admin"}};
    identity_provider = oidc::provider_of(config, runtime, clock);
    oidc::ProviderOptions options = identity_provider->options();
    identity_provider =
        oidc::Provider::create(runtime, clock, options, [this](const std::string& url, int) -> Result<std::string> {
          if (issuer_is_away) return fail(ErrorCode::unavailable, "connection refused");
          if (url.ends_with("/jwks")) return oidc::test::key_set({key.jwk(R"(,"kid":"a")")});
          return R"({"issuer":"https://id.example","jwks_uri":"https://id.example/jwks"})";
        });
  }

  std::shared_ptr<net::http::Request> request(const net::http::Headers& headers,
                                              const std::string& path = "/api/whoami") {
    auto made = std::make_shared<net::http::Request>();
    made->method = "GET";
    made->path = path;
    made->headers = headers;
    made->headers.emplace_back("host", "127.0.0.1");
    made->peer_address = "192.0.2.7";
    made->local_address = "127.0.0.1";
    return made;
  }

  net::http::Response ask(const std::shared_ptr<net::http::Request>& made) {
    if (!api) start();
    auto answer = std::make_shared<Answer>();
    made->worker = &runtime.worker(0);
    runtime.worker(0).post([handler = api->handler(), made, answer] { handler(made, answer); });
    return answer->get();
  }
  net::http::Response ask(const net::http::Headers& headers, const std::string& peer = "192.0.2.7") {
    auto made = request(headers);
    made->peer_address = peer;
    return ask(made);
  }
  net::http::Response with_certificate(const std::string& common_name, const net::http::Headers& headers = {}) {
    auto made = request(headers);
    made->is_tls = true;
    made->client_certificate = std::make_shared<const net::http::ClientCertificate>(
        net::http::ClientCertificate{common_name, std::string(64, 'f'), clock.wall_now() + std::chrono::hours(1)});
    return ask(made);
  }

  static net::http::Headers bearer(const std::string& token) { return {{"authorization", "Bearer " + token}}; }

  std::string token(const std::string& groups, const std::string& subject = "alice",
                    const std::string& audience = "hive", long long life = 300) {
    long long now = std::chrono::duration_cast<std::chrono::seconds>(clock.wall_now().time_since_epoch()).count();
    return key.token(R"({"alg":"ES256","kid":"a"})",
                     R"({"iss":"https://id.example","aud":")" + audience + R"(","sub":")" + subject + R"(","groups":)" +
                         groups + ",\"exp\":" + std::to_string(now + life) + "}",
                     "ES256");
  }

  static std::string text(const net::http::Response& response, std::string_view key) {
    auto parsed = json::parse(response.body);
    return parsed ? text_at(*parsed, key) : response.body;
  }
  static std::string header(const net::http::Response& response, std::string_view name) {
    for (const auto& [key, value] : response.headers) {
      if (key == name) return value;
    }
    return "";
  }

  void expect_caller(const net::http::Response& response, std::string_view principal, std::string_view role) {
    EXPECT_EQ(response.status, 200u) << response.body;
    EXPECT_EQ(text(response, "principal"), principal);
    EXPECT_EQ(text(response, "role"), role);
  }
  /// Expects 401 with this code, and the reason and words in the newest entry of the audit log, and there alone.
  void expect_refused(const net::http::Response& response, std::string_view code, std::string_view reason,
                      std::string_view words) {
    EXPECT_EQ(response.status, 401u) << response.body;
    EXPECT_EQ(text(response, "code"), code);
    EXPECT_TRUE(header(response, "WWW-Authenticate").starts_with("Bearer realm=")) << code;
    std::vector<audit::Record> records = log.records();
    ASSERT_FALSE(records.empty());
    EXPECT_EQ(records.back().action, "authentication_failed");
    EXPECT_EQ(records.back().reason, reason);
    EXPECT_NE(records.back().detail.find(words), std::string::npos) << records.back().detail;
    EXPECT_TRUE(words.empty() || response.body.find(words) == std::string::npos) << response.body;
  }
  /// So that the next failure gets an entry of its own.
  void next_period() {
    clock.advance(std::chrono::seconds(61));
    ask(net::http::Headers());
    clock.advance(std::chrono::seconds(61));
    ask(net::http::Headers());
  }

  oidc::test::SigningKey key = oidc::test::SigningKey::curve("P-256");
  std::atomic<bool> issuer_is_away = false;
};

TEST_F(IdentityTest, AClientCertificateSaysWhoCalls) {
  expect_caller(with_certificate("ops-console"), "ops-console", "operator");
}

TEST_F(IdentityTest, ACertificateDecidesAloneWhateverElseIsSent) {
  expect_caller(with_certificate("ops-console", bearer(admin_token)), "ops-console", "operator");
  expect_refused(with_certificate("stranger", bearer(admin_token)), "credential_refused", "no_role", "stranger");
}

TEST_F(IdentityTest, ACertificateWithoutASoundNameIsRefused) {
  expect_refused(with_certificate(""), "credential_refused", "bad_identity", "client certificate");
}

TEST_F(IdentityTest, ACertificateIsWorthNothingAfterItsEnd) {
  auto made = request({});
  made->client_certificate = std::make_shared<const net::http::ClientCertificate>(
      net::http::ClientCertificate{"ops-console", "", clock.wall_now()});
  expect_refused(ask(made), "credential_refused", "expired_token", "has ended");
}

TEST_F(IdentityTest, ACertificateCountsForNothingWhereNoneAreWanted) {
  config.client_ca_cert_path.clear();
  config.mtls_cn_roles.clear();
  EXPECT_EQ(text(with_certificate("ops-console"), "code"), "missing_credentials");
  EXPECT_EQ(with_certificate("ops-console", bearer(admin_token)).status, 200u);
}

TEST_F(IdentityTest, ATrustedProxySaysWhoCalls) {
  net::http::Headers headers = {{"x-proxy-secret", proxy_secret}, {"x-forwarded-user", "bob"}};
  expect_caller(ask(headers, "10.0.0.1"), "bob", "operator");
  expect_caller(ask(headers, "10.1.200.3"), "bob", "operator");
}

TEST_F(IdentityTest, TheProxysSecretFromAnotherAddressIsRefusedAndRecorded) {
  net::http::Headers headers = {{"x-proxy-secret", proxy_secret}, {"x-forwarded-user", "bob"}};
  expect_refused(ask(headers, "10.0.0.2"), "missing_credentials", "untrusted_proxy", "10.0.0.2");
  for (const audit::Record& record : log.records())
    EXPECT_EQ(record.detail.find(proxy_secret), std::string::npos);
}

TEST_F(IdentityTest, AWrongSecretFromTheProxysAddressIsRefusedAndRecorded) {
  net::http::Headers headers = {{"x-proxy-secret", "guess"}, {"x-forwarded-user", "bob"}};
  expect_refused(ask(headers, "10.0.0.1"), "missing_credentials", "untrusted_proxy", "10.0.0.1");
}

TEST_F(IdentityTest, AProxyWithoutAUserShowsNoCredential) {
  EXPECT_EQ(text(ask({{"x-proxy-secret", proxy_secret}}, "10.0.0.1"), "code"), "missing_credentials");
  EXPECT_EQ(text(ask({{"x-proxy-secret", proxy_secret}, {"x-forwarded-user", ""}}, "10.0.0.1"), "code"),
            "missing_credentials");
  EXPECT_TRUE(log.records().empty());
}

TEST_F(IdentityTest, ProxyHeadersThatAreSentTwiceAreNone) {
  net::http::Headers headers = {
      {"x-proxy-secret", proxy_secret}, {"x-forwarded-user", "bob"}, {"x-forwarded-user", "carol"}};
  EXPECT_EQ(ask(headers, "10.0.0.1").status, 401u);
  headers = {{"x-proxy-secret", proxy_secret}, {"x-proxy-secret", "x"}, {"x-forwarded-user", "bob"}};
  EXPECT_EQ(ask(headers, "10.0.0.1").status, 401u);
}

TEST_F(IdentityTest, BehindAProxyFailuresCountForTheClient) {
  net::http::Headers headers = bearer("wrong");
  headers.emplace_back("x-forwarded-for", "198.51.100.9");
  for (int i = 0; i < 20; ++i)
    EXPECT_EQ(ask(headers, "10.0.0.1").status, 401u);
  EXPECT_EQ(ask(headers, "10.0.0.1").status, 429u);
  EXPECT_EQ(log.records().front().detail, "once from 198.51.100.9");
  headers.back().second = "198.51.100.10";
  EXPECT_EQ(ask(headers, "10.0.0.1").status, 401u);
}

TEST_F(IdentityTest, AForgedForwardedForDoesNotDodgeTheLimit) {
  for (int i = 0; i < 20; ++i) {
    net::http::Headers headers = bearer("wrong");
    // What the client invents stands before what the proxy appends, in the same line or in one of its own.
    headers.emplace_back("x-forwarded-for", "203.0.113." + std::to_string(i));
    headers.emplace_back("x-forwarded-for", "198.51.100.9");
    EXPECT_EQ(ask(headers, "10.0.0.1").status, 401u);
    headers = bearer("wrong");
    headers.emplace_back("x-forwarded-for", "203.0.113." + std::to_string(i));
    EXPECT_EQ(ask(headers, "192.0.2.7").status, 401u);
  }
  net::http::Headers headers = bearer("wrong");
  headers.emplace_back("x-forwarded-for", "203.0.113.200, 198.51.100.9");
  EXPECT_EQ(ask(headers, "10.0.0.1").status, 429u);
  EXPECT_EQ(ask(headers, "192.0.2.7").status, 429u);
}

TEST_F(IdentityTest, AnIdentityTokenSaysWhoCalls) {
  expect_caller(ask(bearer(token(R"(["ops"])"))), "alice", "operator");
  expect_caller(ask(bearer(token(R"(["ops","admins"])"))), "alice", "admin");
  expect_caller(ask(bearer(token(R"("ops")", "bob"))), "bob", "operator");
}

TEST_F(IdentityTest, OtherCredentialsWorkBesideAnIssuer) {
  issuer_is_away = true;
  expect_caller(with_certificate("ops-console"), "ops-console", "operator");
  EXPECT_EQ(ask(bearer(admin_token)).status, 200u);
}

TEST_F(IdentityTest, NobodyGetsARoleThatNoGroupGives) {
  expect_refused(ask(bearer(token(R"(["guests"])"))), "credential_refused", "no_role", "alice");
  next_period();
  expect_refused(ask(bearer(token("[]"))), "credential_refused", "no_role", "alice");
}

TEST_F(IdentityTest, ARefusedTokenTellsItsReasonToTheLogAlone) {
  expect_refused(ask(bearer(token(R"(["ops"])", "alice", "other"))), "credential_refused", "bad_claims", "audience");
  next_period();
  expect_refused(ask(bearer(token(R"(["ops"])", "alice", "hive", -1))), "credential_refused", "expired_token",
                 "expired 1 s ago");
  next_period();
  std::string forged = token(R"(["ops"])");
  forged[forged.size() - 10] = forged[forged.size() - 10] == 'A' ? 'B' : 'A';
  expect_refused(ask(bearer(forged)), "credential_refused", "bad_signature", "signature");
  next_period();
  expect_refused(ask(bearer(token(R"(["ops"])", "gateway"))), "credential_refused", "bad_identity", "gateway\"");
}

TEST_F(IdentityTest, AnIssuerThatIsAwayRefusesItsTokensAndSaysSo) {
  issuer_is_away = true;
  expect_refused(ask(bearer(token(R"(["ops"])"))), "provider_unavailable", "provider_unavailable",
                 "connection refused");
}

TEST_F(IdentityTest, WhatLooksLikeAnIdentityTokenIsNothingElse) {
  // A token of this form is not taken into the configuration beside an issuer; without one it is a token like others.
  expect_refused(ask(bearer("static.token.with-dots-0123456789")), "credential_refused", "malformed_credentials",
                 "base64url");
  config.oidc_issuer.clear();
  config.oidc_role_map.clear();
  config.tokens.push_back({config::Secret("static.token.with-dots-0123456789"), "admin", "", "tokens[3]"});
  identity_provider = nullptr;
  api->apply(settings());
  EXPECT_EQ(ask(bearer("static.token.with-dots-0123456789")).status, 200u);
}

TEST_F(IdentityTest, WithoutItsProviderAnIssuersTokensAreRefused) {
  identity_provider = nullptr;
  expect_refused(ask(bearer(token(R"(["ops"])"))), "provider_unavailable", "provider_unavailable", "");
}

TEST_F(IdentityTest, ARefusedRoleIsRecordedAndManyAreSummedUp) {
  auto made = [&] {
    auto asked = request(bearer(reader_token), "/api/audit");
    return asked;
  };
  for (int i = 0; i < 200; ++i)
    EXPECT_EQ(ask(made()).status, 403u);
  std::vector<audit::Record> records = log.records();
  ASSERT_EQ(records.size(), 10u);
  for (const audit::Record& record : records) {
    EXPECT_EQ(record.action, "access_denied");
    EXPECT_EQ(record.reason, "role");
    EXPECT_EQ(record.detail, "GET /api/audit");
    EXPECT_NE(record.request_id, "");
  }
  clock.advance(std::chrono::seconds(61));
  ask(bearer(admin_token));
  records = log.records();
  ASSERT_EQ(records.size(), 11u);
  EXPECT_EQ(records.back().detail, "190 more like this: GET /api/audit");
  EXPECT_EQ(records.back().principal, records.front().principal);
}

TEST_F(IdentityTest, WhatWasSummedUpIsWrittenAtTheEnd) {
  for (int i = 0; i < 12; ++i)
    ask(request(bearer(reader_token), "/api/audit"));
  api->flush();
  EXPECT_EQ(log.records().back().detail, "2 more like this: GET /api/audit");
}

}  // namespace
}  // namespace hive::rest::test
