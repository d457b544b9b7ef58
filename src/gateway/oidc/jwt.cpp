#include "gateway/oidc/jwt.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/strings.h"
#include "protocol/json.h"

namespace hive::oidc {

namespace {

using policy::CredentialFault;

constexpr json::Limits header_limits = {.max_bytes = max_token_bytes, .max_depth = 8, .max_values = 256};

constexpr std::array<std::pair<std::string_view, Algorithm>, 9> algorithm_names = {{
    {"RS256", Algorithm::rs256},
    {"RS384", Algorithm::rs384},
    {"RS512", Algorithm::rs512},
    {"PS256", Algorithm::ps256},
    {"PS384", Algorithm::ps384},
    {"PS512", Algorithm::ps512},
    {"ES256", Algorithm::es256},
    {"ES384", Algorithm::es384},
    {"ES512", Algorithm::es512},
}};

std::unexpected<OidcFault> malformed(std::string detail) {
  return std::unexpected(OidcFault{CredentialFault::malformed, std::move(detail)});
}

std::unexpected<OidcFault> unacceptable(std::string detail) {
  return std::unexpected(OidcFault{CredentialFault::bad_signature, std::move(detail)});
}

std::string lower_case(std::string_view text) {
  std::string lower(text);
  std::ranges::transform(lower, lower.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return lower;
}

/// ID tokens say "JWT" or nothing, access tokens "at+jwt" (RFC 9068); a logout token or a proof of possession must not
/// be taken for one of these.
bool is_identity_type(std::string_view type) {
  std::string name = lower_case(type);
  if (name.starts_with("application/")) name.erase(0, std::string_view("application/").size());
  return name == "jwt" || name == "at+jwt";
}

}  // namespace

std::string_view to_string(Algorithm algorithm) {
  for (const auto& [name, value] : algorithm_names) {
    if (value == algorithm) return name;
  }
  return "";
}

std::optional<Algorithm> algorithm_from_string(std::string_view name) {
  for (const auto& [known, value] : algorithm_names) {
    if (known == name) return value;
  }
  return std::nullopt;
}

Result<std::string> decode_base64url(std::string_view text) {
  std::string standard(text);
  for (char& c : standard) {
    if (c == '+' || c == '/' || c == '=') return fail(ErrorCode::invalid_argument, "not base64url");
    if (c == '-') c = '+';
    if (c == '_') c = '/';
  }
  standard.append((4 - standard.size() % 4) % 4, '=');
  auto bytes = from_base64(standard);
  if (!bytes) return fail(ErrorCode::invalid_argument, "not base64url");
  return std::string(as_text(*bytes));
}

std::expected<Jwt, OidcFault> parse_jwt(std::string_view text) {
  if (text.size() > max_token_bytes) {
    return malformed(fmt::format("the token has {} bytes; at most {} are read", text.size(), max_token_bytes));
  }
  std::vector<std::string_view> parts = split(text, '.');
  if (parts.size() != 3) return malformed(fmt::format("the token has {} parts instead of 3", parts.size()));
  Result<std::string> header_text = decode_base64url(parts[0]);
  if (!header_text) return malformed("the token's header is not base64url");
  Result<std::string> payload = decode_base64url(parts[1]);
  if (!payload) return malformed("the token's payload is not base64url");
  if (parts[2].empty()) return unacceptable("the token has no signature");
  if (!decode_base64url(parts[2])) return malformed("the token's signature is not base64url");

  Result<std::vector<json::Member>> header = json::parse_object(*header_text, header_limits);
  if (!header) return malformed("the token's header is not a JSON object: " + header.error().message);
  if (json::find(*header, "crit")) return unacceptable("the token's header demands extensions (crit)");

  auto algorithm_text = json::decode_string(json::find(*header, "alg").value_or(""));
  if (!algorithm_text) return unacceptable("the token's header names no algorithm (alg)");
  std::optional<Algorithm> algorithm = algorithm_from_string(*algorithm_text);
  if (!algorithm)
    return unacceptable(fmt::format("the algorithm {} is not accepted", quote(algorithm_text->substr(0, 64))));

  if (auto raw = json::find(*header, "typ")) {
    auto type = json::decode_string(*raw);
    if (!type) return malformed("the token's typ is not text");
    if (!is_identity_type(*type)) {
      return unacceptable(
          fmt::format("a token of the type {} is no identity or access token", quote(type->substr(0, 64))));
    }
  }

  Jwt jwt;
  jwt.algorithm = *algorithm;
  if (auto raw = json::find(*header, "kid")) {
    jwt.key_id = json::decode_string(*raw);
    if (!jwt.key_id) return malformed("the token's key id (kid) is not text");
    if (jwt.key_id->size() > max_key_id_bytes) {
      return malformed(fmt::format("the token's key id (kid) is longer than {} bytes", max_key_id_bytes));
    }
  }
  jwt.text = text;
  jwt.payload = *std::move(payload);
  return jwt;
}

}  // namespace hive::oidc
