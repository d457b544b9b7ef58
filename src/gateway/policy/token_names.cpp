#include "gateway/policy/token_names.h"

#include <algorithm>

#include "base/strings.h"
#include "gateway/policy/authenticator.h"

namespace hive::policy {

namespace {

constexpr std::string_view name_domain = "myrmex-hive token name v2";
constexpr std::string_view hash_prefix = "sha256:";

bool is_lower_hex(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

std::optional<crypto::Digest> digest_from_hex(std::string_view digits) {
  crypto::Digest digest{};
  if (digits.size() != 2 * digest.size() || !std::ranges::all_of(digits, is_lower_hex)) return std::nullopt;
  auto bytes = from_hex(digits);
  if (!bytes) return std::nullopt;
  std::ranges::copy(*bytes, digest.begin());
  return digest;
}

}  // namespace

bool is_bearer_text(std::string_view text, std::size_t max_bytes) {
  return !text.empty() && text.size() <= max_bytes &&
         std::ranges::all_of(text, [](char c) { return c > 0x20 && c < 0x7f; });
}

std::optional<crypto::Digest> token_digest(const config::Secret& configured) {
  std::string_view token = configured.reveal();
  // A damaged hash must not become a token that is as public as the hash was meant to be.
  if (token.starts_with(hash_prefix)) return digest_from_hex(token.substr(hash_prefix.size()));
  if (!is_bearer_text(token, max_static_token_bytes)) return std::nullopt;
  return crypto::sha256(token);
}

std::string token_principal_name(const crypto::Digest& digest_of_token) {
  std::string text(name_domain);
  text += '\0';
  text += as_text(digest_of_token);
  crypto::Digest digest = crypto::sha256(text);
  return "token:" + to_hex({digest.data(), 6});
}

std::string token_principal_name(std::string_view token) {
  return token_principal_name(crypto::sha256(token));
}

}  // namespace hive::policy
