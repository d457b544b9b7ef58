#pragma once

#include <cstddef>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/clock.h"
#include "crypto/random.h"
#include "crypto/sha256.h"
#include "gateway/oidc/claims.h"

namespace hive::oidc {

/// Tokens that were verified, by a keyed digest, so that a client that shows one a thousand times a second costs one
/// verification. Bounded; keeps no token. Not thread-safe.
class RememberedTokens {
 public:
  explicit RememberedTokens(std::size_t max_tokens) : max_tokens_(max_tokens), salt_(crypto::random_hex(16)) {}

  /// Thread-safe.
  [[nodiscard]] crypto::Digest key_of(std::string_view token) const {
    std::string text;
    text.reserve(salt_.size() + token.size());
    text += salt_;
    text += token;
    return crypto::sha256(text);
  }

  [[nodiscard]] std::shared_ptr<const CheckedClaims> find(const crypto::Digest& key) const {
    auto found = tokens_.find(key);
    return found == tokens_.end() ? nullptr : found->second;
  }

  void add(const crypto::Digest& key, std::shared_ptr<const CheckedClaims> claims, WallTime now) {
    if (tokens_.size() >= max_tokens_) {
      std::erase_if(tokens_, [now](const auto& entry) { return entry.second->expires_at <= now; });
    }
    // Full of tokens that live: forgetting all costs each of them one verification.
    if (tokens_.size() >= max_tokens_) tokens_.clear();
    tokens_.insert_or_assign(key, std::move(claims));
  }

  void clear() { tokens_.clear(); }
  [[nodiscard]] std::size_t size() const { return tokens_.size(); }

 private:
  struct Hash {
    std::size_t operator()(const crypto::Digest& digest) const {
      std::size_t hash = 0;
      std::memcpy(&hash, digest.data(), sizeof hash);
      return hash;
    }
  };

  const std::size_t max_tokens_;
  const std::string salt_;
  std::unordered_map<crypto::Digest, std::shared_ptr<const CheckedClaims>, Hash> tokens_;
};

}  // namespace hive::oidc
