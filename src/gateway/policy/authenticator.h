#pragma once

#include <expected>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/result.h"
#include "config/gateway_config.h"
#include "crypto/sha256.h"
#include "gateway/policy/principal.h"

namespace hive::policy {

/// Why a credential was not accepted. Codes go to the audit log; the caller is told no more than it sent.
enum class CredentialFault {
  missing,      ///< no Authorization header
  malformed,    ///< not "Bearer TOKEN"
  unsupported,  ///< another scheme than Bearer
  unknown,      ///< a well-formed token that nobody has
};
std::string_view to_string(CredentialFault fault);

/// Knows the bearer tokens of a configuration, and keeps only keyed digests of them. Immutable; thread-safe.
class Authenticator {
 public:
  /// From auth_token (admin) and tokens. Refuses empty tokens, unknown roles and one token with two roles; messages
  /// never contain a token.
  static Result<std::shared_ptr<const Authenticator>> create(const config::GatewayConfig& config);

  /// Who presents this Authorization header (RFC 6750).
  [[nodiscard]] std::expected<Principal, CredentialFault> authenticate(
      std::optional<std::string_view> authorization) const;

 private:
  struct DigestHash {
    std::size_t operator()(const crypto::Digest& digest) const;
  };

  Authenticator();
  Result<void> add(std::string_view token, std::string_view role, std::string_view field);
  [[nodiscard]] crypto::Digest key_of(std::string_view token) const;

  // The key is new with every instance: whoever measures the look-up's time learns about digests that he can't compute.
  const std::string salt_;
  std::unordered_map<crypto::Digest, Principal, DigestHash> principals_;
};

/// How a token stands in the audit log: "token:" and 12 hexadecimal digits of its digest, the same after every start.
std::string token_principal_name(std::string_view token);

/// The token of a well-formed "Bearer TOKEN" header, or the fault.
std::expected<std::string_view, CredentialFault> bearer_token(std::optional<std::string_view> authorization);

}  // namespace hive::policy
