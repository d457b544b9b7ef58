#include "gateway/policy/authenticator.h"

#include <algorithm>
#include <cstring>
#include <unordered_map>

#include "base/strings.h"
#include "crypto/random.h"
#include "crypto/sha256.h"

namespace hive::policy {

namespace {

constexpr std::size_t max_token_bytes = 4096;
constexpr std::string_view name_domain = "myrmex-hive token name v1";

bool is_visible_ascii(char c) {
  return c > 0x20 && c < 0x7f;
}

bool equals_bearer(std::string_view scheme) {
  constexpr std::string_view bearer = "bearer";
  return std::ranges::equal(scheme, bearer, [](char c, char expected) {
    return (c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c) == expected;
  });
}

}  // namespace

std::string_view to_string(CredentialFault fault) {
  switch (fault) {
    case CredentialFault::missing:
      return "missing_credentials";
    case CredentialFault::malformed:
      return "malformed_credentials";
    case CredentialFault::unsupported:
      return "unsupported_scheme";
    case CredentialFault::unknown:
      return "unknown_token";
    case CredentialFault::expired:
      return "expired_credentials";
    case CredentialFault::no_role:
      return "no_role";
    case CredentialFault::bad_identity:
      return "bad_identity";
    case CredentialFault::bad_signature:
      return "bad_signature";
    case CredentialFault::bad_claims:
      return "bad_claims";
    case CredentialFault::provider_unavailable:
      return "provider_unavailable";
  }
  return "unknown_token";
}

std::string token_principal_name(std::string_view token) {
  std::string text(name_domain);
  text += '\0';
  text += token;
  crypto::Digest digest = crypto::sha256(text);
  return "token:" + to_hex({digest.data(), 6});
}

std::expected<std::string_view, CredentialFault> bearer_token(std::optional<std::string_view> authorization) {
  if (!authorization) return std::unexpected(CredentialFault::missing);
  std::size_t blank = authorization->find(' ');
  std::string_view scheme = authorization->substr(0, blank);
  if (!equals_bearer(scheme)) {
    bool is_scheme = !scheme.empty() && blank != std::string_view::npos;
    return std::unexpected(is_scheme ? CredentialFault::unsupported : CredentialFault::malformed);
  }
  if (blank == std::string_view::npos) return std::unexpected(CredentialFault::malformed);
  std::string_view token = authorization->substr(blank);
  token.remove_prefix(std::min(token.find_first_not_of(' '), token.size()));
  if (token.empty() || token.size() > max_token_bytes || !std::ranges::all_of(token, is_visible_ascii)) {
    return std::unexpected(CredentialFault::malformed);
  }
  return token;
}

namespace {

struct DigestHash {
  std::size_t operator()(const crypto::Digest& digest) const {
    std::size_t hash = 0;
    std::memcpy(&hash, digest.data(), sizeof hash);
    return hash;
  }
};

class ConfiguredAuthenticator final : public Authenticator {
 public:
  Result<void> add(std::string_view token, std::string_view role, std::string_view field);

  [[nodiscard]] std::optional<std::string_view> identity_token(const Credentials&) const override {
    return std::nullopt;
  }
  [[nodiscard]] std::expected<Principal, CredentialFault> authenticate(const Credentials& credentials) const override;
  [[nodiscard]] std::expected<Principal, CredentialFault> from_claims(const IdentityClaims&) const override {
    return std::unexpected(CredentialFault::no_role);
  }
  [[nodiscard]] std::optional<Principal> refresh(const Principal& earlier) const override {
    for (const auto& [digest, principal] : principals_)
      if (principal.name == earlier.name) return principal;
    return std::nullopt;
  }
  [[nodiscard]] bool is_trusted_proxy(std::string_view) const override { return false; }

 private:
  [[nodiscard]] crypto::Digest key_of(std::string_view token) const;

  // The key is new with every instance: whoever measures the look-up's time learns about digests that he can't compute.
  const std::string salt_ = crypto::random_hex(16);
  std::unordered_map<crypto::Digest, Principal, DigestHash> principals_;
};

crypto::Digest ConfiguredAuthenticator::key_of(std::string_view token) const {
  // The salt has a fixed length, so that no two pairs give the same text.
  std::string text;
  text.reserve(salt_.size() + token.size());
  text += salt_;
  text += token;
  return crypto::sha256(text);
}

Result<void> ConfiguredAuthenticator::add(std::string_view token, std::string_view role, std::string_view field) {
  if (token.empty() || token.size() > max_token_bytes || !std::ranges::all_of(token, is_visible_ascii)) {
    return fail(ErrorCode::invalid_argument,
                "{}: a token has 1 to {} visible ASCII characters and no blanks; this one can never be presented",
                field, max_token_bytes);
  }
  std::optional<Role> known = role_from_string(role);
  if (!known) {
    return fail(ErrorCode::invalid_argument, "{}: unknown role {}; use admin, operator or read-only", field,
                quote(role));
  }
  auto [entry, is_new] = principals_.try_emplace(key_of(token), Principal{token_principal_name(token), *known});
  if (!is_new && entry->second.role != *known) {
    return fail(ErrorCode::invalid_argument, "{}: the same token has the roles {} and {}; give it one", field,
                to_string(entry->second.role), to_string(*known));
  }
  return {};
}

std::expected<Principal, CredentialFault> ConfiguredAuthenticator::authenticate(const Credentials& credentials) const {
  auto token = bearer_token(credentials.authorization);
  if (!token) return std::unexpected(token.error());
  auto found = principals_.find(key_of(*token));
  if (found == principals_.end()) return std::unexpected(CredentialFault::unknown);
  return found->second;
}

}  // namespace

std::string client_address(std::string_view peer_address, std::optional<std::string_view>, const Authenticator&) {
  return std::string(peer_address);
}

Result<std::shared_ptr<const Authenticator>> Authenticator::create(const config::GatewayConfig& config,
                                                                   const Clock& /*clock*/) {
  auto made = std::make_shared<ConfiguredAuthenticator>();
  if (!config.auth_token.empty()) TRY(made->add(config.auth_token.reveal(), "admin", "auth_token"));
  for (const config::StaticToken& token : config.tokens)
    TRY(made->add(token.token.reveal(), token.role, "tokens"));
  return made;
}

}  // namespace hive::policy
