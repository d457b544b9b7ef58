#include "config/gateway_access.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/strings.h"
#include "config/gateway_fixture.h"
#include "crypto/sha256.h"

namespace hive::config {
namespace {

using test::problems_of;
using test::read_gateway;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

const std::string hash(64, 'a');

TEST(GatewayTokens, AreARoleOrAnObjectWithRoleAndIdentity) {
  Result<GatewayConfig> config = read_gateway(
      R"("tokens":{"one":"operator","two":{"role":"admin","identity":"alice"},"three":{"role":"read-only"}})");
  ASSERT_TRUE(config) << config.error().message;
  ASSERT_EQ(config->tokens.size(), 3U);
  EXPECT_EQ(config->tokens[0].role, "operator");
  EXPECT_EQ(config->tokens[0].identity, "");
  EXPECT_EQ(config->tokens[1].token.reveal(), "two");
  EXPECT_EQ(config->tokens[1].role, "admin");
  EXPECT_EQ(config->tokens[1].identity, "alice");
  EXPECT_EQ(config->tokens[1].field, "tokens[1]");
  EXPECT_EQ(config->tokens[2].identity, "");
}

TEST(GatewayTokens, AreTakenAsHashesWhereTheySayTheyAre) {
  Result<GatewayConfig> config = read_gateway(
      fmt::format(R"("auth_token":"sha256:{}","tokens":{{"env:HASH":"operator"}},)"
                  R"("scoped_tokens":[{{"token":"sha256:{}","role":"operator","agents":["*"],"tools":["*"]}}])",
                  std::string(64, '1'), std::string(64, '2')));
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->auth_token.reveal(), "sha256:" + std::string(64, '1'));
  EXPECT_EQ(config->tokens[0].token.reveal(), "sha256:" + hash);
  EXPECT_EQ(config->scoped_tokens[0].credential.token.reveal(), "sha256:" + std::string(64, '2'));
}

TEST(GatewayTokens, AreRefusedAsHalfAHash) {
  for (std::string_view token : {"sha256:", "sha256:abc", "sha256:hush"}) {
    std::string problems = problems_of(fmt::format(R"("auth_token":"{0}","tokens":{{"{0}":"admin"}})", token));
    EXPECT_THAT(problems, AllOf(HasSubstr("auth_token: "), HasSubstr("tokens[0]: "), HasSubstr("myrmex token hash")));
    EXPECT_THAT(problems, Not(HasSubstr("hush")));
  }
  EXPECT_THAT(problems_of(fmt::format(R"("auth_token":"sha256:{}")", std::string(64, 'A'))), HasSubstr("lower-case"));
  EXPECT_THAT(problems_of(fmt::format(R"("auth_token":"sha256:{}")", std::string(65, 'a'))), HasSubstr("64"));
}

TEST(GatewayTokens, WithBlanksAreRefusedWhereverTheyStand) {
  EXPECT_THAT(problems_of(R"("auth_token":"a b")"), HasSubstr("auth_token: a token must not contain blanks"));
  EXPECT_THAT(problems_of(R"("tokens":{"a b":"admin"})"), HasSubstr("tokens[0]: a token must not contain blanks"));
  EXPECT_THAT(problems_of(R"("scoped_tokens":[{"token":"a b"}])"),
              HasSubstr("scoped_tokens[0].token: a token must not contain blanks"));
}

TEST(GatewayTokens, AreOneCredentialEach) {
  EXPECT_THAT(problems_of(R"("auth_token":"t","tokens":{"t":"admin"})"),
              HasSubstr("tokens[0]: is the same secret as auth_token"));
  EXPECT_THAT(problems_of(R"("tokens":{"env:TOKEN":"operator","${TOKEN}":"admin"})"),
              HasSubstr("tokens[1]: is the same secret as tokens[0]"));
  EXPECT_THAT(problems_of(R"("tokens":{"t":"operator"},
      "scoped_tokens":[{"token":"t","role":"operator","agents":["a"],"tools":["*"]}])"),
              HasSubstr("/etc/gateway.json:2: scoped_tokens[0]: is the same secret as tokens[0]"));
}

TEST(GatewayTokens, AreOneCredentialWhetherWrittenOutOrHashed) {
  std::string hashed = "sha256:" + to_hex(crypto::sha256("token-1"));
  EXPECT_THAT(problems_of(fmt::format(R"("tokens":{{"token-1":"admin","{}":"operator"}})", hashed)),
              HasSubstr("tokens[1]: is the same secret as tokens[0]"));
}

TEST(GatewayTokens, NameNobodyWhoCouldBeMistakenForAnother) {
  for (std::string_view identity : {"", " alice", "alice ", R"(a\u0000b)", R"(a\u202eb)", "token:0123456789ab"}) {
    EXPECT_THAT(problems_of(fmt::format(R"("tokens":{{"t":{{"role":"admin","identity":"{}"}}}})", identity)),
                HasSubstr("tokens[0].identity: "))
        << identity;
  }
  EXPECT_EQ(problems_of(R"("tokens":{"t":{"role":"admin","identity":"Zoë <zoe@example.org>"}})"), "");
}

TEST(GatewayTokens, NeedARoleAndShowNothingThatCouldBeTheToken) {
  EXPECT_THAT(problems_of(R"("tokens":{"t":{"identity":"alice"}})"), HasSubstr("tokens[0]: role is not set"));
  std::string problems = problems_of(R"("tokens":{"hush-1":"hush-2","hush-3":{"role":"hush-4"},"hush-5":["hush-6"]})");
  EXPECT_THAT(problems, AllOf(HasSubstr("tokens[0]: is not a role"), HasSubstr("tokens[1].role: is not a role"),
                              HasSubstr("tokens[2]: expected a string"), Not(HasSubstr("hush"))));
}

TEST(GatewayTokens, MayBeTenThousand) {
  std::string tokens;
  for (int i = 0; i < 10'000; ++i) {
    tokens += fmt::format("{}\n\"token-{}\":{{\"role\":\"operator\",\"identity\":\"p{}\"}}", i == 0 ? "" : ",", i, i);
  }
  auto start = std::chrono::steady_clock::now();
  Result<GatewayConfig> config = read_gateway(fmt::format("\"tokens\":{{{}}}", tokens));
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->tokens.size(), 10'000U);
  EXPECT_EQ(config->where("tokens[9999]"), "/etc/gateway.json:10001: tokens[9999]");
  // Counting lines or comparing tokens one with another would take many times as long.
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
}

TEST(ScopedTokens, AreReadWithAllTheySay) {
  Result<GatewayConfig> config = read_gateway(R"("scoped_tokens":[{"token":"env:TOKEN","role":"operator",
      "identity":"bob","agents":["agent-1","edge-*","gateway"],"tags":["web","eu-*"],"tools":["get_*","run_command"],
      "expires_at":"2027-01-31T12:30:15Z"}])");
  ASSERT_TRUE(config) << config.error().message;
  ASSERT_EQ(config->scoped_tokens.size(), 1U);
  const ScopedToken& token = config->scoped_tokens[0];
  EXPECT_EQ(token.credential.token.reveal(), "from-environment");
  EXPECT_EQ(token.credential.role, "operator");
  EXPECT_EQ(token.credential.identity, "bob");
  EXPECT_EQ(token.credential.field, "scoped_tokens[0]");
  EXPECT_THAT(token.agents, ElementsAre("agent-1", "edge-*", "gateway"));
  EXPECT_THAT(token.tags, ElementsAre("web", "eu-*"));
  EXPECT_THAT(token.tools, ElementsAre("get_*", "run_command"));
  ASSERT_TRUE(token.expires_at);
  EXPECT_EQ(format_rfc3339(*token.expires_at), "2027-01-31T12:30:15.000Z");
  EXPECT_THAT(config->without_effect, IsEmpty());
}

TEST(ScopedTokens, DoNotReachTheWholeFleetByAForgottenList) {
  for (std::string_view lists : {"", R"(,"agents":[])", R"(,"agents":null,"tags":[])"}) {
    EXPECT_THAT(
        problems_of(fmt::format(R"("scoped_tokens":[{{"token":"t","role":"operator","tools":["*"]{}}}])", lists)),
        AllOf(HasSubstr("scoped_tokens[0]: reaches no agent"), HasSubstr(R"("agents": ["*"])")))
        << lists;
  }
  for (std::string_view lists : {"", R"(,"tools":[])", R"(,"tools":null)"}) {
    EXPECT_THAT(
        problems_of(fmt::format(R"("scoped_tokens":[{{"token":"t","role":"operator","agents":["*"]{}}}])", lists)),
        HasSubstr(R"("tools": ["*"])"))
        << lists;
  }
  EXPECT_EQ(problems_of(R"("scoped_tokens":[{"token":"t","role":"operator","tags":["web"],"tools":["*"]}])"), "");
}

TEST(ScopedTokens, NameAgentsAndToolsThatCanExist) {
  auto problems = [](std::string_view agent, std::string_view tool) {
    return problems_of(fmt::format(
        R"("scoped_tokens":[{{"token":"t","role":"operator","agents":["{}"],"tools":["{}"]}}])", agent, tool));
  };
  EXPECT_EQ(problems("web-*-eu", "container_*"), "");
  for (std::string_view agent : {"a b", "a__b", "-a", "a?", "[ab]", "é*", "a__*", "", "a/*"}) {
    EXPECT_THAT(problems(agent, "*"), HasSubstr("scoped_tokens[0].agents[0]: ")) << agent;
  }
  EXPECT_THAT(problems("*", "agent-1__run_command"), HasSubstr(R"(write "run_command")"));
  for (std::string_view tool : {"a b", "agent__*", "", "é"}) {
    EXPECT_THAT(problems("*", tool), HasSubstr("scoped_tokens[0].tools[0]: ")) << tool;
  }
  EXPECT_THAT(problems(std::string(129, '*'), "*"), HasSubstr("longer than 128 bytes"));
}

TEST(ScopedTokens, ExpireAtAMomentThatExists) {
  auto problems = [](std::string_view time) {
    return problems_of(fmt::format(
        R"("scoped_tokens":[{{"token":"t","role":"operator","agents":["*"],"tools":["*"],"expires_at":"{}"}}])", time));
  };
  EXPECT_EQ(problems("2020-02-29T00:00:00Z"), "") << "a token whose time has passed is nobody's mistake";
  for (std::string_view time :
       {"tomorrow", "2027-01-31", "2027-02-29T00:00:00Z", "2027-01-31T00:00:00+01:00", "2027-01-31 00:00:00Z",
        "2027-13-01T00:00:00Z", "2027-01-31T24:00:00Z", "9999-01-01T00:00:00Z", "2027-01-31T00:00:60Z", ""}) {
    EXPECT_THAT(problems(time), HasSubstr("scoped_tokens[0].expires_at: ")) << time;
  }
}

TEST(ClientCertificates, NeedARoleForSomebodyAndHttps) {
  EXPECT_THAT(problems_of(R"("client_ca_cert_path":"ca.pem")"),
              AllOf(HasSubstr("http_addr is not"), HasSubstr("neither mtls_cn_roles nor mtls_role")));
  Result<GatewayConfig> config = read_gateway(
      R"("http_addr":":1","client_ca_cert_path":"ca.pem","mtls_role":"read-only","mtls_cn_roles":{"alice":"admin"})");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->client_ca_cert_path, "/etc/ca.pem");
  EXPECT_EQ(config->mtls_role, "read-only");
  EXPECT_THAT(config->mtls_cn_roles, ElementsAre(Pair("alice", "admin")));
  EXPECT_THAT(problems_of(R"("mtls_cn_roles":{"alice":"root"})"), HasSubstr("mtls_cn_roles.alice: expected one of"));
  EXPECT_THAT(problems_of(R"("mtls_cn_roles":{"":"admin"})"), HasSubstr("mtls_cn_roles"));
  EXPECT_THAT(problems_of(R"("mtls_role":"root")"), HasSubstr("mtls_role: expected one of"));
}

TEST(TrustedProxy, IsBoundToItsAddressesAndBothHeaders) {
  EXPECT_THAT(problems_of(R"("trusted_proxy_secret":"s")"),
              AllOf(HasSubstr("needs both"), HasSubstr(R"("trusted_proxy_addresses": ["10.0.0.5"])")));
  Result<GatewayConfig> config = read_gateway(R"("http_addr":":1","trusted_proxy_secret":"env:TOKEN",
      "trusted_proxy_identity_header":"X-Forwarded-User","trusted_proxy_secret_header":"X-Proxy-Secret",
      "trusted_proxy_addresses":["10.0.0.5","10.1.0.0/16","::ffff:192.0.2.1","fd00::/8","::FFFF:10.2.0.0/112"])");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->trusted_proxy_secret.reveal(), "from-environment");
  EXPECT_EQ(config->trusted_proxy_identity_header, "x-forwarded-user");
  EXPECT_EQ(config->trusted_proxy_secret_header, "x-proxy-secret");
  EXPECT_EQ(config->trusted_proxy_role, "operator");
  EXPECT_THAT(config->trusted_proxy_addresses,
              ElementsAre("10.0.0.5", "10.1.0.0/16", "192.0.2.1", "fd00::/8", "10.2.0.0/16"));
}

TEST(TrustedProxy, HasHeadersThatMeanNothingElse) {
  for (std::string_view name : {"Authorization", "cookie", "HOST", "X-Forwarded-For", "a b", "a:b", "é", "a\\nb"}) {
    EXPECT_THAT(problems_of(fmt::format(R"("trusted_proxy_secret_header":"{}")", name)),
                HasSubstr("trusted_proxy_secret_header: "))
        << name;
  }
  EXPECT_THAT(problems_of(R"("trusted_proxy_secret_header":"X-A","trusted_proxy_identity_header":"x-a")"),
              HasSubstr("name one header"));
}

TEST(TrustedProxy, HasAddressesThatAreWhatTheySeem) {
  auto problems = [](std::string_view address) {
    return problems_of(fmt::format(R"("trusted_proxy_addresses":["{}"])", address));
  };
  EXPECT_THAT(problems("10.0.0.1/8"), HasSubstr("write 10.0.0.0/8 or 10.0.0.1"));
  EXPECT_THAT(problems("0.0.0.0/0"), HasSubstr("holds every address"));
  EXPECT_THAT(problems("::ffff:0.0.0.0/96"), HasSubstr("holds every address"));
  for (std::string_view address : {"proxy", "10.0.0", "10.0.0.1/33", "10.0.0.1/", "10.0.0.0/+8", "::1/129", "", "/8"}) {
    EXPECT_THAT(problems(address), HasSubstr("trusted_proxy_addresses[0]: ")) << address;
  }
}

TEST(SingleSignOn, IsRefusedByHalves) {
  EXPECT_THAT(problems_of(R"("oidc_issuer":"https://idp")"),
              AllOf(HasSubstr("oidc_audience is not"), HasSubstr("oidc_role_map is not")));
  EXPECT_THAT(problems_of(R"("oidc_issuer":"https://idp","oidc_audience":"a","oidc_role_map":{"x":"root"})"),
              HasSubstr("oidc_role_map.x: expected one of admin, operator, read-only"));
  Result<GatewayConfig> config = read_gateway(R"("http_addr":":1","oidc_issuer":"https://idp/realm","oidc_audience":"a",
      "oidc_role_map":{"ops":"admin","https://x/y":"operator"},"oidc_ca_cert_path":"ca.pem")");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->oidc_issuer, "https://idp/realm");
  EXPECT_EQ(config->oidc_role_claim, "groups");
  EXPECT_THAT(config->oidc_role_map, UnorderedElementsAre(Pair("ops", "admin"), Pair("https://x/y", "operator")));
  EXPECT_EQ(config->oidc_ca_cert_path, "/etc/ca.pem");
}

TEST(SingleSignOn, TakesKeysFromNobodyOnTheWay) {
  for (std::string_view issuer : {"http://idp", "http://localhost:1", "http://127.0.0.1.evil", "ftp://idp", "https://",
                                  "https://u@idp", "https://idp/?x", "https://idp#x", "idp", "https://i dp"}) {
    EXPECT_THAT(problems_of(fmt::format(R"("oidc_issuer":"{}")", issuer)), HasSubstr("oidc_issuer: ")) << issuer;
  }
  for (std::string_view issuer : {"http://127.0.0.1:8080", "http://[::1]:8080/realm", "https://idp/"}) {
    EXPECT_EQ(
        problems_of(fmt::format(R"("oidc_issuer":"{}","oidc_audience":"a","oidc_role_map":{{"x":"admin"}})", issuer)),
        "")
        << issuer;
  }
}

TEST(GatewayAccess, IsOpenToSomebodyByAnyOfTheWays) {
  EXPECT_THAT(problems_of(R"("http_addr":":1")"), HasSubstr("nobody could call"));
  for (std::string_view way : {R"("auth_token":"t")", R"("tokens":{"t":"operator"})",
                               R"("scoped_tokens":[{"token":"t","role":"operator","agents":["*"],"tools":["*"]}])",
                               R"("client_ca_cert_path":"ca.pem","mtls_role":"operator")",
                               R"("oidc_issuer":"https://idp","oidc_audience":"a","oidc_role_map":{"x":"admin"})"}) {
    EXPECT_EQ(problems_of(fmt::format(R"("http_addr":":1",{})", way)), "") << way;
  }
}

TEST(GatewayLines, TellWhereEveryValueStandsAndNeverASecret) {
  Result<GatewayConfig> config = read_gateway(R"(
    "tokens": {
      "hush-1": "operator",
      "hush-2": {"role": "admin",
        "identity": "alice"}
    },
    "risk_tiers": {"run_command:uptime": "read"},
    "require_approval_tiers": ["write",
      "admin"])");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->where("tokens[0]"), "/etc/gateway.json:3: tokens[0]");
  EXPECT_EQ(config->where("tokens[1].identity"), "/etc/gateway.json:5: tokens[1].identity");
  EXPECT_EQ(config->where("risk_tiers.run_command:uptime"), "/etc/gateway.json:7: risk_tiers.run_command:uptime");
  EXPECT_EQ(config->where("require_approval_tiers[1]"), "/etc/gateway.json:9: require_approval_tiers[1]");
  EXPECT_EQ(config->where("rate_limit_per_minute"), "/etc/gateway.json: rate_limit_per_minute is not set");
  for (const auto& [field, line] : config->lines) {
    EXPECT_THAT(field, Not(HasSubstr("hush")));
  }
}

}  // namespace
}  // namespace hive::config
