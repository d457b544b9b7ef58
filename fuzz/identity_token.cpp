// What anybody may send as an identity token: its three parts, and the claims in it.
#include "fuzz_target.h"
#include "gateway/oidc/claims.h"
#include "gateway/oidc/jwt.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace hive;
  std::string_view text = fuzz::as_text(data, size);
  const oidc::ClaimRules rules = {"https://id.example", "hive", "groups"};
  auto check = [&](std::string_view payload) {
    auto claims = oidc::read_claims(payload, rules);
    if (!claims) {
      CHECK(!claims.error().detail.empty());
      return;
    }
    CHECK(!claims->identity.subject.empty());
    CHECK(claims->identity.groups.size() <= oidc::max_groups);
    CHECK(claims->identity.expires_at == claims->expires_at);
    CHECK(oidc::check_times(*claims, claims->expires_at).has_value());
  };
  check(text);
  auto jwt = oidc::parse_jwt(text);
  if (!jwt) {
    CHECK(!jwt.error().detail.empty());
    return 0;
  }
  CHECK(jwt->text == text);
  CHECK(size <= oidc::max_token_bytes);
  check(jwt->payload);
  return 0;
}
