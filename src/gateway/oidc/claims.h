#pragma once

#include <chrono>
#include <expected>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "gateway/oidc/fault.h"

namespace hive::oidc {

/// What the claims of a token must say.
struct ClaimRules {
  std::string issuer;      ///< equal to "iss", byte for byte
  std::string audience;    ///< "aud", or one of its values
  std::string role_claim;  ///< text, or a list of texts
};

/// How far the issuer's clock may be ahead of ours. Nothing is added to the end of a token's life.
constexpr std::chrono::seconds clock_leeway{60};
constexpr std::size_t max_groups = 256;
constexpr std::size_t max_claim_bytes = 256;

/// The claims of a token that was checked, and when it holds.
struct CheckedClaims {
  policy::IdentityClaims identity;
  WallTime expires_at;
  std::optional<WallTime> not_before;  ///< the later of "nbf" and "iat"
};

/// Reads the payload of a token whose signature is good (RFC 7519 section 4.1). Does not look at the time.
std::expected<CheckedClaims, OidcFault> read_claims(std::string_view payload, const ClaimRules& rules);

/// Why the claims do not hold now, with the offset; nullopt if they do.
std::optional<OidcFault> check_times(const CheckedClaims& claims, WallTime now);

}  // namespace hive::oidc
