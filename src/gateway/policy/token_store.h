#pragma once

#include <array>
#include <cstring>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/clock.h"
#include "base/result.h"
#include "config/gateway_config.h"
#include "crypto/sha256.h"
#include "gateway/policy/principal.h"
#include "gateway/policy/rule_text.h"
#include "gateway/policy/scope.h"

namespace hive::policy {

/// The tokens of a configuration, under SHA-256(salt, SHA-256(token)) with a salt of this run: finding one takes the
/// same time however many there are, and how long it takes tells nothing about a token's text.
class TokenStore {
 public:
  static Result<TokenStore> create(const config::GatewayConfig& config, const RuleText& rules);

  /// Whose token it is, or nullptr. Whether it has expired is for the caller to see.
  [[nodiscard]] const Principal* find(std::string_view token) const;
  [[nodiscard]] const Principal* find_by_name(std::string_view principal) const;

 private:
  struct DigestHash {
    std::size_t operator()(const crypto::Digest& digest) const {
      std::size_t hash = 0;
      std::memcpy(&hash, digest.data(), sizeof hash);
      return hash;
    }
  };
  struct Entry {
    Principal principal;
    std::string field;
  };

  TokenStore();
  [[nodiscard]] crypto::Digest key_of(const crypto::Digest& token_digest) const;
  Result<void> add(const config::Secret& token, const std::string& field, std::string_view role, Grant grant);
  Result<void> add_scoped(const config::ScopedToken& token, std::string field, const RuleText& rules);

  std::array<std::uint8_t, 32> salt_{};
  std::unordered_map<crypto::Digest, Entry, DigestHash> entries_;
  std::unordered_map<std::string, const Entry*, TextHash, std::equal_to<>> by_name_;
  bool refuses_identity_tokens_ = false;
};

/// Whether a bearer token has the form of an identity token (RFC 7519): three parts between two dots, none empty at the
/// ends.
bool looks_like_identity_token(std::string_view token);

}  // namespace hive::policy
