#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "gateway/oidc/jwt.h"

namespace hive::oidc {

constexpr std::size_t max_key_set_bytes = std::size_t{256} << 10;
constexpr std::size_t max_keys = 64;

/// The public keys of an issuer (RFC 7517). Immutable; thread-safe.
class KeySet {
 public:
  enum class Verdict {
    good,
    bad_signature,
    wrong_algorithm,  ///< the key is there, but it is for another algorithm
    unknown_key,      ///< no key has the token's key id
  };

  /// Reads a key set. A key that cannot be used safely is left out, and `skipped` says why: a private or symmetric key,
  /// RSA outside of 2048 to 8192 bits, an unknown curve, a point that is not on its curve, a key for encryption. A set
  /// without any usable key is an error.
  static Result<std::shared_ptr<const KeySet>> parse(std::string_view text);
  virtual ~KeySet() = default;

  /// Each key verifies one algorithm only: the one its "alg" names, otherwise the usual one of its type (RS256, or the
  /// one of its curve). A token without key id is good if a key for its algorithm verifies it.
  [[nodiscard]] virtual Verdict verify(const Jwt& token) const = 0;

  [[nodiscard]] virtual std::size_t size() const = 0;
  [[nodiscard]] virtual const std::vector<std::string>& skipped() const = 0;
};

}  // namespace hive::oidc
