#include "gateway/policy/authenticator.h"

#include <gtest/gtest.h>

namespace hive::policy {
namespace {

config::GatewayConfig configuration() {
  config::GatewayConfig config;
  config.auth_token = config::Secret("the-admin-token");
  config.tokens = {{config::Secret("the-operator-token"), "operator"}, {config::Secret("reader"), "read-only"}};
  return config;
}

TEST(Authenticator, KnowsEachTokenWithItsRole) {
  auto made = Authenticator::create(configuration(), system_clock());
  ASSERT_TRUE(made);
  for (auto [header, role] :
       {std::pair("Bearer the-admin-token", Role::admin), std::pair("bearer the-operator-token", Role::operator_),
        std::pair("BEARER   reader", Role::read_only)}) {
    auto principal = (*made)->authenticate({.authorization = header});
    ASSERT_TRUE(principal) << header;
    EXPECT_EQ(principal->role, role);
  }
}

TEST(Authenticator, SaysWhatIsWrongWithACredential) {
  auto made = Authenticator::create(configuration(), system_clock());
  ASSERT_TRUE(made);
  auto fault = [&](std::optional<std::string_view> header) {
    return (*made)->authenticate({.authorization = header}).error();
  };
  EXPECT_EQ(fault(std::nullopt), CredentialFault::missing);
  for (const char* header : {"", "Bearer", "Bearer ", "Bearer a b", "Bearer a\tb", "Bearerx", "the-admin-token",
                             "Bearer \xc3\xa9", " Bearer the-admin-token", "Bearer the-admin-token "})
    EXPECT_EQ(fault(header), CredentialFault::malformed) << header;
  for (const char* header : {"Basic eDp5", "Digest x", "Bearerx the-admin-token"})
    EXPECT_EQ(fault(header), CredentialFault::unsupported) << header;
  for (const char* header : {"Bearer the-admin-toke", "Bearer the-admin-tokenx", "Bearer THE-ADMIN-TOKEN"})
    EXPECT_EQ(fault(header), CredentialFault::unknown) << header;
  EXPECT_EQ(fault("Bearer " + std::string(5000, 'x')), CredentialFault::malformed);
}

TEST(Authenticator, APrincipalIsNamedByAFingerprintThatStaysTheSame) {
  auto first = Authenticator::create(configuration(), system_clock());
  auto second = Authenticator::create(configuration(), system_clock());
  ASSERT_TRUE(first && second);
  auto name = (*first)->authenticate({.authorization = "Bearer reader"})->name;
  EXPECT_EQ(name, (*second)->authenticate({.authorization = "Bearer reader"})->name);
  EXPECT_EQ(name, token_principal_name("reader"));
  EXPECT_TRUE(name.starts_with("token:"));
  EXPECT_EQ(name.size(), 18u);
  EXPECT_EQ(name.find("reader"), std::string::npos);
  EXPECT_NE(name, (*first)->authenticate({.authorization = "Bearer the-admin-token"})->name);
}

TEST(Authenticator, RefusesTokensThatCanNeverWorkWithoutPrintingThem) {
  for (const char* token : {"", "with blank", "tab\t", "\xc3\xa9"}) {
    config::GatewayConfig config = configuration();
    config.tokens.push_back({config::Secret(token), "operator"});
    auto made = Authenticator::create(config, system_clock());
    ASSERT_FALSE(made) << token;
    EXPECT_TRUE(made.error().message.starts_with("tokens: "));
    if (*token != '\0') {
      EXPECT_EQ(made.error().message.find(token), std::string::npos);
    }
  }
}

TEST(Authenticator, RefusesUnknownRolesAndOneTokenWithTwo) {
  config::GatewayConfig config = configuration();
  config.tokens.push_back({config::Secret("x"), "root"});
  auto made = Authenticator::create(config, system_clock());
  ASSERT_FALSE(made);
  EXPECT_NE(made.error().message.find("\"root\""), std::string::npos);

  config = configuration();
  config.tokens.push_back({config::Secret("the-admin-token"), "read-only"});
  made = Authenticator::create(config, system_clock());
  ASSERT_FALSE(made);
  EXPECT_NE(made.error().message.find("admin and read-only"), std::string::npos);
  EXPECT_EQ(made.error().message.find("the-admin-token"), std::string::npos);
}

TEST(Authenticator, WithoutAnyTokenNobodyGetsIn) {
  auto made = Authenticator::create({}, system_clock());
  ASSERT_TRUE(made);
  EXPECT_FALSE((*made)->authenticate({.authorization = "Bearer x"}));
}

}  // namespace
}  // namespace hive::policy
