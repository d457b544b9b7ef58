#include "gateway/oidc/jwt.h"

#include <gtest/gtest.h>

#include "gateway/oidc/signing_key.h"

namespace hive::oidc::test {
namespace {

using policy::CredentialFault;

std::string unsigned_token(const std::string& header, const std::string& payload = "{}") {
  return base64url(header) + "." + base64url(payload) + ".AAAA";
}

void expect_fault(const std::string& token, CredentialFault fault, std::string_view words) {
  auto jwt = parse_jwt(token);
  ASSERT_FALSE(jwt) << token;
  EXPECT_EQ(jwt.error().fault, fault) << jwt.error().detail;
  EXPECT_NE(jwt.error().detail.find(words), std::string::npos) << jwt.error().detail;
}

TEST(ParseJwt, TakesATokenApart) {
  std::string token = unsigned_token(R"({"alg":"ES384","kid":"k 1","typ":"at+jwt"})", R"({"sub":"alice"})");
  auto jwt = parse_jwt(token);
  ASSERT_TRUE(jwt) << jwt.error().detail;
  EXPECT_EQ(jwt->algorithm, Algorithm::es384);
  EXPECT_EQ(jwt->key_id, "k 1");
  EXPECT_EQ(jwt->payload, R"({"sub":"alice"})");
  EXPECT_EQ(jwt->text, token);
}

TEST(ParseJwt, AcceptsEveryPublicKeyAlgorithmAndNoOther) {
  for (std::string name : {"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512"}) {
    auto jwt = parse_jwt(unsigned_token("{\"alg\":\"" + name + "\"}"));
    ASSERT_TRUE(jwt) << name;
    EXPECT_EQ(to_string(jwt->algorithm), name);
  }
  for (std::string name :
       {"none", "None", "HS256", "HS384", "HS512", "EdDSA", "rs256", "RS256 ", "RS1", "", "A256KW"}) {
    expect_fault(unsigned_token("{\"alg\":\"" + name + "\"}"), CredentialFault::bad_signature, "is not accepted");
  }
  expect_fault(unsigned_token(R"({"kid":"a"})"), CredentialFault::bad_signature, "no algorithm");
  expect_fault(unsigned_token(R"({"alg":["RS256"]})"), CredentialFault::bad_signature, "no algorithm");
  expect_fault(unsigned_token(R"({"alg":"none","alg":"RS256"})"), CredentialFault::malformed, "header");
}

TEST(ParseJwt, RefusesATokenWithoutSignature) {
  expect_fault(base64url(R"({"alg":"RS256"})") + "." + base64url("{}") + ".", CredentialFault::bad_signature,
               "no signature");
}

TEST(ParseJwt, IgnoresKeysThatTheTokenBrings) {
  auto jwt = parse_jwt(unsigned_token(
      R"({"alg":"RS256","kid":"a","jwk":{"kty":"RSA"},"jku":"https://evil.example/k","x5u":"https://evil.example/c","x5c":["AA=="]})"));
  ASSERT_TRUE(jwt);
  EXPECT_EQ(jwt->key_id, "a");
}

TEST(ParseJwt, RefusesCriticalExtensions) {
  expect_fault(unsigned_token(R"({"alg":"RS256","crit":["b64"],"b64":false})"), CredentialFault::bad_signature, "crit");
}

TEST(ParseJwt, RefusesATokenThatIsMeantForSomethingElse) {
  for (std::string type : {"logout+jwt", "dpop+jwt", "secevent+jwt", "JOSE", ""}) {
    expect_fault(unsigned_token(R"({"alg":"RS256","typ":")" + type + "\"}"), CredentialFault::bad_signature, "type");
  }
  for (std::string type : {"JWT", "jwt", "at+jwt", "application/at+jwt"}) {
    EXPECT_TRUE(parse_jwt(unsigned_token(R"({"alg":"RS256","typ":")" + type + "\"}"))) << type;
  }
}

TEST(ParseJwt, RefusesWhatHasNotTheForm) {
  std::string header = base64url(R"({"alg":"RS256"})");
  for (const std::string& token :
       {std::string(), std::string("a"), std::string("a.b"), header + ".e30.AA.AA", header + ".e30=.AAAA",
        header + ".e3+.AAAA", header + ".e30.AA/A", header + ".e30.A", header + ".e31.AAAA", "." + header + ".AAAA",
        base64url("[]") + ".e30.AAAA", base64url("{") + ".e30.AAAA", base64url("{\"alg\":\"RS256\"}x") + ".e30.AAAA",
        base64url("\xff") + ".e30.AAAA", unsigned_token(R"({"alg":"RS256","kid":7})"),
        unsigned_token(R"({"alg":"RS256","typ":7})"),
        unsigned_token(R"({"alg":"RS256","kid":")" + std::string(257, 'k') + "\"}")}) {
    auto jwt = parse_jwt(token);
    ASSERT_FALSE(jwt) << token;
    EXPECT_EQ(jwt.error().fault, CredentialFault::malformed) << token << ": " << jwt.error().detail;
  }
}

TEST(ParseJwt, ReadsUpToItsLimitAndNoFurther) {
  std::string short_token = unsigned_token(R"({"alg":"RS256"})", "");
  std::string payload(max_token_bytes - short_token.size(), 'A');
  payload.resize(payload.size() / 4 * 4);
  std::string token = short_token;
  token.insert(token.rfind('.'), payload);
  EXPECT_TRUE(parse_jwt(token));
  token.insert(token.rfind('.'), "AAAA");
  expect_fault(token, CredentialFault::malformed, "at most 16384");
}

TEST(ParseJwt, BoundsTheDepthOfTheHeader) {
  expect_fault(unsigned_token(R"({"alg":"RS256","x":)" + std::string(2000, '[') + std::string(2000, ']') + "}"),
               CredentialFault::malformed, "header");
}

}  // namespace
}  // namespace hive::oidc::test
