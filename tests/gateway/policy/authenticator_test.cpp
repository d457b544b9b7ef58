#include "gateway/policy/authenticator.h"

#include <set>

#include <gtest/gtest.h>

#include "base/strings.h"
#include "gateway/policy/credentials.h"

namespace hive::policy {
namespace {

using namespace std::chrono_literals;

config::GatewayConfig configuration() {
  config::GatewayConfig config;
  config.source_path = "gateway.json";
  config.auth_token = config::Secret("the-admin-token");
  config.tokens = {static_token("the-operator-token", "operator", "alice", "tokens[0]"),
                   static_token("reader", "read-only", "", "tokens[1]")};
  config.lines = {{"auth_token", 3}, {"tokens[0]", 5}, {"tokens[1]", 6}};
  return config;
}

config::ScopedToken scoped(std::string token, std::optional<WallTime> expires_at = {}) {
  return {static_token(std::move(token), "operator", "bob", "scoped_tokens[0]"), {"edge-*"}, {}, {"*"}, expires_at};
}

class AuthenticatorTest : public testing::Test {
 protected:
  std::shared_ptr<const Authenticator> make(const config::GatewayConfig& config) {
    auto made = Authenticator::create(config, clock_);
    EXPECT_TRUE(made) << made.error().message;
    return made ? *made : nullptr;
  }
  std::string refusal(const config::GatewayConfig& config) {
    auto made = Authenticator::create(config, clock_);
    EXPECT_FALSE(made);
    return made ? "" : made.error().message;
  }

  ManualClock clock_;
};

TEST_F(AuthenticatorTest, KnowsEachTokenWithItsRole) {
  auto made = make(configuration());
  for (auto [header, role] :
       {std::pair("Bearer the-admin-token", Role::admin), std::pair("bearer the-operator-token", Role::operator_),
        std::pair("BEARER   reader", Role::read_only)}) {
    auto principal = made->authenticate(with_header(header));
    ASSERT_TRUE(principal) << header;
    EXPECT_EQ(principal->role, role);
    EXPECT_EQ(principal->scope(), nullptr);
  }
}

TEST_F(AuthenticatorTest, TellsWhoseTokenItIsAndWhichLineGaveTheRole) {
  auto made = make(configuration());
  auto alice = made->authenticate(with_header("Bearer the-operator-token"));
  EXPECT_EQ(alice->identity(), "alice");
  EXPECT_EQ(alice->name, token_principal_name("the-operator-token"));
  EXPECT_EQ(alice->grant->rule, "gateway.json:5: tokens[0] = operator");
  auto admin = made->authenticate(with_header("Bearer the-admin-token"));
  EXPECT_EQ(admin->identity(), admin->name);
  EXPECT_EQ(admin->grant->rule, "gateway.json:3: auth_token = [redacted] (always admin)");
}

TEST_F(AuthenticatorTest, SaysWhatIsWrongWithACredential) {
  auto made = make(configuration());
  auto fault = [&](std::optional<std::string_view> header) { return made->authenticate(with_header(header)).error(); };
  EXPECT_EQ(fault(std::nullopt), CredentialFault::missing);
  for (const char* header : {"", "Bearer", "Bearer ", "Bearer a b", "Bearer a\tb", "Bearerx", "the-admin-token",
                             "Bearer \xc3\xa9", " Bearer the-admin-token", "Bearer the-admin-token "})
    EXPECT_EQ(fault(header), CredentialFault::malformed) << header;
  for (const char* header : {"Basic eDp5", "Digest x", "Bearerx the-admin-token"})
    EXPECT_EQ(fault(header), CredentialFault::unsupported) << header;
  for (const char* header : {"Bearer the-admin-toke", "Bearer the-admin-tokenx", "Bearer THE-ADMIN-TOKEN"})
    EXPECT_EQ(fault(header), CredentialFault::unknown) << header;
  EXPECT_EQ(fault("Bearer " + std::string(20'000, 'x')), CredentialFault::malformed);
}

TEST_F(AuthenticatorTest, APrincipalIsNamedByAFingerprintThatStaysTheSame) {
  auto first = make(configuration());
  auto second = make(configuration());
  auto name = first->authenticate(with_header("Bearer reader"))->name;
  EXPECT_EQ(name, second->authenticate(with_header("Bearer reader"))->name);
  EXPECT_EQ(name, token_principal_name("reader"));
  EXPECT_TRUE(name.starts_with("token:"));
  EXPECT_EQ(name.size(), 18u);
  EXPECT_NE(name, first->authenticate(with_header("Bearer the-admin-token"))->name);
}

TEST_F(AuthenticatorTest, AHashStandsForItsTokenUnderTheSameName) {
  config::GatewayConfig config;
  config.tokens = {static_token(hashed("the-operator-token"), "operator")};
  auto made = make(config);
  auto principal = made->authenticate(with_header("Bearer the-operator-token"));
  ASSERT_TRUE(principal);
  EXPECT_EQ(principal->name, token_principal_name("the-operator-token"));
  // Who has read the configuration has not got in.
  std::string stolen = "Bearer " + hashed("the-operator-token");
  EXPECT_EQ(made->authenticate(with_header(stolen)).error(), CredentialFault::unknown);
  stolen = "Bearer " + hashed("the-operator-token").substr(7);
  EXPECT_EQ(made->authenticate(with_header(stolen)).error(), CredentialFault::unknown);
}

TEST_F(AuthenticatorTest, RefusesTokensThatCanNeverWorkWithoutPrintingThem) {
  std::string upper = hashed("x");
  for (char& c : upper)
    c = c >= 'a' && c <= 'f' && &c > &upper[6] ? static_cast<char>(c - 'a' + 'A') : c;
  for (const std::string& token :
       {std::string(), std::string("with blank"), std::string("tab\t"), std::string("\xc3\xa9"),
        std::string("sha256:1234"), upper, hashed("x") + "0", std::string(4097, 'x')}) {
    config::GatewayConfig config = configuration();
    config.tokens.push_back(static_token(token, "operator", "", "tokens[2]"));
    std::string message = refusal(config);
    EXPECT_TRUE(message.starts_with("tokens[2]: ")) << message;
    if (!token.empty()) {
      EXPECT_EQ(message.find(token), std::string::npos);
    }
  }
}

TEST_F(AuthenticatorTest, RefusesUnknownRolesEverywhere) {
  auto with = [](auto change) {
    config::GatewayConfig config = configuration();
    change(config);
    return config;
  };
  for (const config::GatewayConfig& config :
       {with([](auto& c) { c.tokens.push_back(static_token("x", "root")); }),
        with([](auto& c) { c.mtls_role = "root"; }), with([](auto& c) { c.mtls_cn_roles["ann"] = "root"; }),
        with([](auto& c) { c.trusted_proxy_role = "root"; }), with([](auto& c) { c.oidc_role_map["g"] = "root"; })}) {
    EXPECT_NE(refusal(config).find("unknown role \"root\""), std::string::npos);
  }
}

TEST_F(AuthenticatorTest, OneTokenStandsInOneFieldOnlyHashedOrNot) {
  config::GatewayConfig config = configuration();
  config.tokens.push_back(static_token(hashed("the-admin-token"), "admin", "", "tokens[2]"));
  std::string message = refusal(config);
  EXPECT_EQ(message, "tokens[2]: is the same token as auth_token; give each a token of its own");

  config = configuration();
  config.scoped_tokens = {scoped("reader")};
  message = refusal(config);
  EXPECT_EQ(message, "scoped_tokens[0]: is the same token as tokens[1]; give each a token of its own");
}

TEST_F(AuthenticatorTest, RefusesConfiguredIdentitiesThatPretend) {
  for (const char* identity : {"token:123456789abc", "gateway", "a\nb"}) {
    config::GatewayConfig config = configuration();
    config.tokens.push_back(static_token("another", "operator", identity, "tokens[2]"));
    EXPECT_TRUE(refusal(config).starts_with("tokens[2].identity: ")) << identity;
  }
}

TEST_F(AuthenticatorTest, WithoutAnyTokenNobodyGetsIn) {
  EXPECT_FALSE(make({})->authenticate(with_header("Bearer x")));
}

TEST_F(AuthenticatorTest, AScopedTokenCarriesItsScopeUntilItExpires) {
  config::GatewayConfig config = configuration();
  config.scoped_tokens = {scoped("limited", clock_.wall_now() + 60s)};
  auto made = make(config);
  auto principal = made->authenticate(with_header("Bearer limited"));
  ASSERT_TRUE(principal);
  ASSERT_NE(principal->scope(), nullptr);
  EXPECT_EQ(principal->scope()->agents, std::vector<std::string>{"edge-*"});
  EXPECT_EQ(principal->scope()->field, "scoped_tokens[0]");
  EXPECT_EQ(principal->grant->kind, CredentialKind::scoped_token);
  EXPECT_EQ(principal->grant, made->authenticate(with_header("Bearer limited"))->grant);
  clock_.advance(60s);
  EXPECT_EQ(made->authenticate(with_header("Bearer limited")).error(), CredentialFault::expired);
  EXPECT_FALSE(made->refresh(*principal));
}

TEST_F(AuthenticatorTest, AScopeThatSaysNothingIsRefused) {
  for (bool without_tools : {true, false}) {
    config::GatewayConfig config = configuration();
    config.scoped_tokens = {scoped("limited")};
    (without_tools ? config.scoped_tokens[0].tools : config.scoped_tokens[0].agents).clear();
    EXPECT_NE(refusal(config).find("is empty; write [\"*\"]"), std::string::npos);
  }
}

// Certificates.

config::GatewayConfig with_certificates() {
  config::GatewayConfig config = configuration();
  config.client_ca_cert_path = "ca.pem";
  config.mtls_cn_roles = {{"ann", "admin"}};
  config.lines["mtls_cn_roles.ann"] = 9;
  return config;
}

TEST_F(AuthenticatorTest, ACertificateDecidesAlone) {
  auto made = make(with_certificates());
  Credentials shown = with_header("Bearer the-admin-token");
  shown.certificate_name = "ann";
  auto ann = made->authenticate(shown);
  ASSERT_TRUE(ann);
  EXPECT_EQ(ann->name, "ann");
  EXPECT_EQ(ann->role, Role::admin);
  EXPECT_EQ(ann->grant->kind, CredentialKind::certificate);
  EXPECT_EQ(ann->grant->rule, "gateway.json:9: mtls_cn_roles.ann = admin");
  shown.certificate_name = "eve";
  EXPECT_EQ(made->authenticate(shown).error(), CredentialFault::no_role);
  shown.certificate_name = "token:0123456789ab";
  EXPECT_EQ(made->authenticate(shown).error(), CredentialFault::bad_identity);
}

TEST_F(AuthenticatorTest, OtherCertificatesGetTheRoleForAllIfThereIsOne) {
  config::GatewayConfig config = with_certificates();
  config.mtls_role = "read-only";
  Credentials shown;
  shown.certificate_name = "eve";
  auto eve = make(config)->authenticate(shown);
  ASSERT_TRUE(eve);
  EXPECT_EQ(eve->role, Role::read_only);
  EXPECT_EQ(eve->identity(), "eve");
}

TEST_F(AuthenticatorTest, ACertificateOfAuthoritiesThatAreNotTrustedAnyMoreCountsForNothing) {
  Credentials shown = with_header("Bearer reader");
  shown.certificate_name = "ann";
  auto principal = make(configuration())->authenticate(shown);
  ASSERT_TRUE(principal);
  EXPECT_EQ(principal->role, Role::read_only);
}

// The trusted proxy.

config::GatewayConfig with_proxy() {
  config::GatewayConfig config = configuration();
  config.trusted_proxy_secret = config::Secret("between-us");
  config.trusted_proxy_addresses = {"10.0.0.0/8", "::1"};
  config.trusted_proxy_role = "operator";
  return config;
}

Credentials from_proxy(std::string_view peer, std::optional<std::string_view> secret,
                       std::optional<std::string_view> identity) {
  Credentials shown;
  shown.peer_address = peer;
  shown.proxy_secret = secret;
  shown.proxy_identity = identity;
  return shown;
}

TEST_F(AuthenticatorTest, ATrustedProxySpeaksForItsUsers) {
  auto made = make(with_proxy());
  for (const char* peer : {"10.1.2.3", "::ffff:10.1.2.3", "::1"}) {
    auto ann = made->authenticate(from_proxy(peer, "between-us", "ann@example.org"));
    ASSERT_TRUE(ann) << peer;
    EXPECT_EQ(ann->name, "ann@example.org");
    EXPECT_EQ(ann->role, Role::operator_);
    EXPECT_EQ(ann->grant->kind, CredentialKind::proxy);
  }
  EXPECT_EQ(made->authenticate(from_proxy("10.1.2.3", "between-us", "system")).error(), CredentialFault::bad_identity);
}

TEST_F(AuthenticatorTest, ProxyHeadersOfAnybodyElseCountForNothing) {
  auto made = make(with_proxy());
  for (Credentials shown : {from_proxy("192.0.2.1", "between-us", "ann"), from_proxy("10.1.2.3", "between", "ann"),
                            from_proxy("10.1.2.3", "", "ann"), from_proxy("10.1.2.3", "between-us", ""),
                            from_proxy("10.1.2.3", std::nullopt, "ann"),
                            from_proxy("10.1.2.3", "between-us", std::nullopt), from_proxy("", "between-us", "ann")}) {
    EXPECT_EQ(made->authenticate(shown).error(), CredentialFault::missing);
    shown.authorization = "Bearer reader";
    EXPECT_EQ(made->authenticate(shown)->role, Role::read_only);
  }
  // Without a secret in the configuration an empty one opens nothing.
  config::GatewayConfig config = with_proxy();
  config.trusted_proxy_secret = {};
  EXPECT_FALSE(make(config)->authenticate(from_proxy("10.1.2.3", "", "ann")));
}

TEST_F(AuthenticatorTest, AProxyWithoutARoleOrAddressesOpensNothing) {
  config::GatewayConfig config = with_proxy();
  config.trusted_proxy_role = "";
  EXPECT_EQ(make(config)->authenticate(from_proxy("10.1.2.3", "between-us", "ann")).error(), CredentialFault::no_role);
  config = with_proxy();
  config.trusted_proxy_addresses = {};
  EXPECT_EQ(make(config)->authenticate(from_proxy("10.1.2.3", "between-us", "ann")).error(), CredentialFault::missing);
}

// Identity tokens.

config::GatewayConfig with_issuer() {
  config::GatewayConfig config = configuration();
  config.oidc_issuer = "https://id.example.org";
  config.oidc_role_map = {{"ops", "operator"}, {"leads", "admin"}, {"staff", "read-only"}};
  config.lines["oidc_role_map.leads"] = 12;
  return config;
}

TEST_F(AuthenticatorTest, LeavesIdentityTokensToTheProvider) {
  auto made = make(with_issuer());
  EXPECT_EQ(made->identity_token(with_header("Bearer a.b.c")), "a.b.c");
  EXPECT_EQ(made->identity_token(with_header("Bearer a..c")), "a..c");
  for (const char* header : {"Bearer a.b", "Bearer .b.c", "Bearer a.b.", "Bearer a.b.c.d", "Bearer reader",
                             "Basic a.b.c", "Bearer ", "Bearer .."})
    EXPECT_FALSE(made->identity_token(with_header(header))) << header;
  EXPECT_FALSE(made->authenticate(with_header("Bearer a.b.c")));
  EXPECT_FALSE(make(configuration())->identity_token(with_header("Bearer a.b.c")));
}

TEST_F(AuthenticatorTest, ACertificateOrProxyComesBeforeAnIdentityToken) {
  config::GatewayConfig config = with_issuer();
  config.client_ca_cert_path = "ca.pem";
  Credentials shown = with_header("Bearer a.b.c");
  shown.certificate_name = "eve";
  EXPECT_FALSE(make(config)->identity_token(shown));

  config = with_proxy();
  config.oidc_issuer = "https://id.example.org";
  shown = from_proxy("10.0.0.1", "between-us", "ann");
  shown.authorization = "Bearer a.b.c";
  EXPECT_FALSE(make(config)->identity_token(shown));
}

TEST_F(AuthenticatorTest, ATokenThatTheProviderWouldTakeForItsOwnIsRefused) {
  config::GatewayConfig config = with_issuer();
  config.tokens.push_back(static_token("a.b.c", "operator", "", "tokens[2]"));
  EXPECT_TRUE(refusal(config).starts_with("tokens[2]: a token with two dots"));
  config.oidc_issuer = "";
  EXPECT_TRUE(make(config)->authenticate(with_header("Bearer a.b.c")));
}

TEST_F(AuthenticatorTest, TheHighestRoleOfTheGroupsCounts) {
  auto made = make(with_issuer());
  auto lead = made->from_claims({"ann", {"staff", "leads", "ops", "others"}, {}});
  ASSERT_TRUE(lead);
  EXPECT_EQ(lead->role, Role::admin);
  EXPECT_EQ(lead->name, "ann");
  EXPECT_EQ(lead->grant->groups.size(), 4u);
  EXPECT_EQ(lead->grant->rule, "gateway.json:12: oidc_role_map.leads = admin");
  EXPECT_EQ(made->from_claims({"ann", {"staff"}, {}})->role, Role::read_only);
  EXPECT_EQ(made->from_claims({"ann", {}, {}}).error(), CredentialFault::no_role);
  EXPECT_EQ(made->from_claims({"ann", {"Leads", "lead", ""}, {}}).error(), CredentialFault::no_role);
  EXPECT_EQ(made->from_claims({"", {"leads"}, {}}).error(), CredentialFault::bad_identity);
  EXPECT_EQ(made->from_claims({"token:abc", {"leads"}, {}}).error(), CredentialFault::bad_identity);
  EXPECT_EQ(made->from_claims({"ann", {"leads"}, clock_.wall_now()}).error(), CredentialFault::expired);
}

// What an earlier credential is worth today.

TEST_F(AuthenticatorTest, ATokenIsWorthWhatTheConfigurationGivesItToday) {
  auto before = make(configuration());
  auto alice = *before->authenticate(with_header("Bearer the-operator-token"));
  config::GatewayConfig config = configuration();
  config.tokens[0] = static_token(hashed("the-operator-token"), "read-only", "alice");
  auto refreshed = make(config)->refresh(alice);
  ASSERT_TRUE(refreshed);
  EXPECT_EQ(refreshed->name, alice.name);
  EXPECT_EQ(refreshed->role, Role::read_only);
  config.tokens.clear();
  EXPECT_FALSE(make(config)->refresh(alice));
  EXPECT_FALSE(before->refresh({"token:000000000000", Role::admin, {}}));
  EXPECT_FALSE(before->refresh({"nobody", Role::admin, {}}));
}

TEST_F(AuthenticatorTest, CertificatesAndProxyUsersAreMappedAgain) {
  Credentials shown;
  shown.certificate_name = "ann";
  auto ann = *make(with_certificates())->authenticate(shown);
  config::GatewayConfig config = with_certificates();
  EXPECT_EQ(make(config)->refresh(ann)->role, Role::admin);
  config.mtls_cn_roles["ann"] = "operator";
  EXPECT_EQ(make(config)->refresh(ann)->role, Role::operator_);
  config.mtls_cn_roles.clear();
  EXPECT_FALSE(make(config)->refresh(ann));
  EXPECT_FALSE(make(configuration())->refresh(ann));

  auto bob = *make(with_proxy())->authenticate(from_proxy("10.0.0.1", "between-us", "bob"));
  config = with_proxy();
  config.trusted_proxy_role = "admin";
  EXPECT_EQ(make(config)->refresh(bob)->role, Role::admin);
  EXPECT_FALSE(make(configuration())->refresh(bob));
}

TEST_F(AuthenticatorTest, AnIdentityOfTheProviderIsMappedAgainUntilItExpires) {
  auto made = make(with_issuer());
  auto ann = *made->from_claims({"ann", {"leads"}, clock_.wall_now() + 60s});
  EXPECT_EQ(made->refresh(ann)->role, Role::admin);
  config::GatewayConfig config = with_issuer();
  config.oidc_role_map.erase("leads");
  EXPECT_FALSE(make(config)->refresh(ann));
  EXPECT_FALSE(make(configuration())->refresh(ann));
  clock_.advance(60s);
  EXPECT_FALSE(made->refresh(ann));
}

TEST_F(AuthenticatorTest, EveryFaultHasACodeOfItsOwn) {
  std::set<std::string_view> codes;
  for (int i = 0; i <= static_cast<int>(CredentialFault::provider_unavailable); ++i)
    codes.insert(to_string(static_cast<CredentialFault>(i)));
  EXPECT_EQ(codes.size(), static_cast<std::size_t>(CredentialFault::provider_unavailable) + 1);
}

}  // namespace
}  // namespace hive::policy
