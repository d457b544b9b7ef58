#include "gateway/oidc/jwks.h"

#include <gtest/gtest.h>

#include "gateway/oidc/signing_key.h"

namespace hive::oidc::test {
namespace {

using Verdict = KeySet::Verdict;

/// Making RSA keys takes long; these are made once.
const SigningKey& rsa_key() {
  static const SigningKey key = SigningKey::rsa();
  return key;
}
const SigningKey& other_rsa_key() {
  static const SigningKey key = SigningKey::rsa();
  return key;
}

std::shared_ptr<const KeySet> parse(const std::vector<std::string>& keys) {
  auto set = KeySet::parse(key_set(keys));
  EXPECT_TRUE(set) << set.error().message;
  return set.value_or(nullptr);
}

Jwt token_of(const SigningKey& key, const std::string& algorithm, const std::string& more = "") {
  auto jwt = parse_jwt(key.token("{\"alg\":\"" + algorithm + "\"" + more + "}", R"({"sub":"alice"})", algorithm));
  EXPECT_TRUE(jwt) << jwt.error().detail;
  return *std::move(jwt);
}

void expect_skipped(const std::string& key, std::string_view reason) {
  auto set = parse({key, rsa_key().jwk()});
  ASSERT_NE(set, nullptr);
  EXPECT_EQ(set->size(), 1u);
  ASSERT_EQ(set->skipped().size(), 1u) << key;
  EXPECT_NE(set->skipped()[0].find(reason), std::string::npos) << set->skipped()[0];
}

TEST(KeySet, VerifiesEveryAlgorithm) {
  for (std::string name : {"RS256", "RS384", "RS512", "PS256", "PS384", "PS512"}) {
    auto set = parse({rsa_key().jwk(R"(,"kid":"a","use":"sig","alg":")" + name + "\"")});
    EXPECT_EQ(set->verify(token_of(rsa_key(), name, R"(,"kid":"a")")), Verdict::good) << name;
  }
  for (auto [curve, name] : {std::pair{"P-256", "ES256"}, {"P-384", "ES384"}, {"P-521", "ES512"}}) {
    SigningKey key = SigningKey::curve(curve);
    auto set = parse({key.jwk(R"(,"kid":"a")")});
    EXPECT_EQ(set->verify(token_of(key, name, R"(,"kid":"a")")), Verdict::good) << name;
    EXPECT_EQ(set->verify(token_of(SigningKey::curve(curve), name, R"(,"kid":"a")")), Verdict::bad_signature) << name;
  }
}

TEST(KeySet, ChangedTokensAreRefused) {
  auto set = parse({rsa_key().jwk(R"(,"kid":"a")")});
  Jwt token = token_of(rsa_key(), "RS256", R"(,"kid":"a")");
  std::size_t payload = token.text.find('.') + 1;
  for (std::size_t at : {std::size_t{2}, payload + 2, token.text.rfind('.') + 2}) {
    Jwt changed = token;
    changed.text[at] = changed.text[at] == 'A' ? 'B' : 'A';
    EXPECT_EQ(set->verify(changed), Verdict::bad_signature) << at;
  }
  EXPECT_EQ(set->verify(token_of(other_rsa_key(), "RS256", R"(,"kid":"a")")), Verdict::bad_signature);
}

TEST(KeySet, AKeyVerifiesOneAlgorithmOnly) {
  auto named = parse({rsa_key().jwk(R"(,"kid":"a","alg":"PS256")")});
  EXPECT_EQ(named->verify(token_of(rsa_key(), "PS256", R"(,"kid":"a")")), Verdict::good);
  EXPECT_EQ(named->verify(token_of(rsa_key(), "RS256", R"(,"kid":"a")")), Verdict::wrong_algorithm);
  auto usual = parse({rsa_key().jwk(R"(,"kid":"a")")});
  EXPECT_EQ(usual->verify(token_of(rsa_key(), "RS256", R"(,"kid":"a")")), Verdict::good);
  EXPECT_EQ(usual->verify(token_of(rsa_key(), "RS512", R"(,"kid":"a")")), Verdict::wrong_algorithm);
  EXPECT_EQ(usual->verify(token_of(rsa_key(), "PS256", R"(,"kid":"a")")), Verdict::wrong_algorithm);
}

TEST(KeySet, ATokenChoosesItsKeyByKeyId) {
  auto set = parse({rsa_key().jwk(R"(,"kid":"a")"), other_rsa_key().jwk(R"(,"kid":"b")")});
  EXPECT_EQ(set->size(), 2u);
  EXPECT_EQ(set->verify(token_of(other_rsa_key(), "RS256", R"(,"kid":"b")")), Verdict::good);
  EXPECT_EQ(set->verify(token_of(other_rsa_key(), "RS256", R"(,"kid":"a")")), Verdict::bad_signature);
  EXPECT_EQ(set->verify(token_of(other_rsa_key(), "RS256", R"(,"kid":"c")")), Verdict::unknown_key);
}

TEST(KeySet, KeysMayShareAKeyId) {
  SigningKey curve = SigningKey::curve("P-256");
  auto set = parse({rsa_key().jwk(R"(,"kid":"a")"), other_rsa_key().jwk(R"(,"kid":"a")"), curve.jwk(R"(,"kid":"a")")});
  EXPECT_EQ(set->verify(token_of(other_rsa_key(), "RS256", R"(,"kid":"a")")), Verdict::good);
  EXPECT_EQ(set->verify(token_of(curve, "ES256", R"(,"kid":"a")")), Verdict::good);
}

TEST(KeySet, ATokenWithoutKeyIdIsTriedWithTheKeysOfItsAlgorithm) {
  auto set = parse({rsa_key().jwk(R"(,"kid":"a")"), SigningKey::curve("P-256").jwk()});
  EXPECT_EQ(set->verify(token_of(rsa_key(), "RS256")), Verdict::good);
  // It may be signed by a key that the issuer has made since.
  EXPECT_EQ(set->verify(token_of(other_rsa_key(), "RS256")), Verdict::unknown_key);
  EXPECT_EQ(set->verify(token_of(rsa_key(), "PS256")), Verdict::unknown_key);
}

TEST(KeySet, ASharedKeyMadeOfThePublicKeyVerifiesNothing) {
  // The classic confusion: HMAC with the public key's text as secret.
  auto jwt = parse_jwt(base64url(R"({"alg":"HS256","kid":"a"})") + ".e30.AAAA");
  EXPECT_FALSE(jwt);
  expect_skipped(R"({"kty":"oct","kid":"a","k":"c2VjcmV0"})", "private or symmetric");
}

TEST(KeySet, LeavesOutKeysThatCannotBeUsedSafely) {
  SigningKey curve = SigningKey::curve("P-256");
  expect_skipped(SigningKey::rsa(1024).jwk(), "1024 bits");
  expect_skipped(rsa_key().jwk(R"(,"use":"enc")"), "use is not sig");
  expect_skipped(rsa_key().jwk(R"(,"key_ops":["sign"])"), "lack verify");
  expect_skipped(rsa_key().jwk(R"(,"d":")" + base64url(rsa_key().private_exponent()) + "\""), "private");
  expect_skipped(rsa_key().jwk(R"(,"alg":"HS256")"), "alg");
  expect_skipped(rsa_key().jwk(R"(,"alg":"ES256")"), "not of RSA");
  expect_skipped(rsa_key().jwk(R"(,"kid":7)"), "kid");
  expect_skipped(curve.jwk(R"(,"alg":"ES384")"), "not of the curve");
  expect_skipped(curve.jwk(R"(,"alg":"RS256")"), "not of the curve");
  expect_skipped(R"({"kty":"OKP","crv":"Ed25519","x":"AA"})", "kty");
  expect_skipped(R"({"kty":"EC","crv":"secp256k1","x":"AA","y":"AA"})", "curve");
  expect_skipped(R"({"kty":"RSA","n":"AA","e":"AQAB"})", "0 bits");
  expect_skipped(R"({"kty":"RSA","e":"AQAB"})", "n is missing");
  expect_skipped(R"({"n":"AQ","e":"AQAB"})", "kty");
  expect_skipped("7", "");
  std::string zeros = base64url(std::string(32, '\1'));
  expect_skipped(R"({"kty":"EC","crv":"P-256","x":")" + zeros + R"(","y":")" + zeros + "\"}", "not on the curve");
}

TEST(KeySet, RefusesWeakExponents) {
  std::string modulus = base64url(std::string(256, '\xc1'));
  for (std::string exponent : {"AQ", "AA", "BA", "AQABAQABAQABAQAB"}) {
    expect_skipped(R"({"kty":"RSA","n":")" + modulus + R"(","e":")" + exponent + "\"}", "exponent");
  }
}

TEST(KeySet, RefusesSetsThatAreNone) {
  for (const std::string& text :
       {std::string(), std::string("{}"), std::string("[]"), std::string(R"({"keys":{}})"),
        std::string(R"({"keys":[]})"), key_set({R"({"kty":"oct","k":"AA"})"}), "{\"keys\":" + std::string(5000, '[')}) {
    EXPECT_FALSE(KeySet::parse(text)) << text.substr(0, 50);
  }
}

TEST(KeySet, BoundsTheNumberOfKeys) {
  EXPECT_TRUE(KeySet::parse(key_set(std::vector<std::string>(64, rsa_key().jwk()))));
  auto too_many = KeySet::parse(key_set(std::vector<std::string>(65, rsa_key().jwk())));
  ASSERT_FALSE(too_many);
  EXPECT_NE(too_many.error().message.find("65 keys"), std::string::npos);
}

}  // namespace
}  // namespace hive::oidc::test
