// The key set of an issuer that has been taken over, and a token that it may or may not verify.
#include "fuzz_target.h"
#include "gateway/oidc/jwks.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace hive;
  auto keys = oidc::KeySet::parse(fuzz::as_text(data, size));
  if (!keys) {
    CHECK(!keys.error().message.empty());
    return 0;
  }
  CHECK((*keys)->size() >= 1);
  CHECK((*keys)->size() + (*keys)->skipped().size() <= oidc::max_keys);
  // {"alg":"RS256"} and {"alg":"ES256"} over {}, with signatures that are none.
  for (const char* text : {"eyJhbGciOiJSUzI1NiJ9.e30.AAAA", "eyJhbGciOiJFUzI1NiJ9.e30.AAAA"}) {
    auto token = oidc::parse_jwt(text);
    CHECK(token.has_value());
    CHECK((*keys)->verify(*token) != oidc::KeySet::Verdict::good);
  }
  return 0;
}
