#pragma once

#include <cstddef>
#include <expected>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "gateway/oidc/fault.h"

namespace hive::oidc {

/// The signatures that an identity token may carry (RFC 7518 section 3.1): those that a public key verifies.
enum class Algorithm { rs256, rs384, rs512, ps256, ps384, ps512, es256, es384, es512 };
std::string_view to_string(Algorithm algorithm);
/// "RS256" and so on; nullopt for "none", for HS256 and its like, and for anything unknown.
std::optional<Algorithm> algorithm_from_string(std::string_view name);

constexpr std::size_t max_token_bytes = 16384;
constexpr std::size_t max_key_id_bytes = 256;

/// A JSON Web Token in compact form (RFC 7519, RFC 7515 section 7.1) whose form is right. Nothing in it is believed
/// yet.
struct Jwt {
  std::string text;  ///< all three parts, as the signature covers them
  Algorithm algorithm = Algorithm::rs256;
  std::optional<std::string> key_id;
  std::string payload;  ///< JSON text
};

/// Takes a token apart. Refuses one without a signature, with a shared-key algorithm, with critical extensions (RFC
/// 7515 section 4.1.11), and one that its own "typ" says is meant for something else (RFC 8725 section 3.11). Keys that
/// the header brings or points to are ignored: only the issuer's own key set counts.
std::expected<Jwt, OidcFault> parse_jwt(std::string_view text);

/// Base64 for URLs without padding (RFC 4648 section 5); strict.
Result<std::string> decode_base64url(std::string_view text);

}  // namespace hive::oidc
