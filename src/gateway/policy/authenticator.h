#pragma once

#include <expected>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "config/gateway_config.h"
#include "gateway/policy/principal.h"

namespace hive::policy {

/// Why a credential was not accepted. Codes go to the audit log; the caller is told no more than it sent.
enum class CredentialFault {
  missing,              ///< no credential at all
  malformed,            ///< not "Bearer TOKEN"
  unsupported,          ///< another scheme than Bearer
  unknown,              ///< a well-formed token that nobody has
  expired,              ///< a token of ours, or of the identity provider, past its time
  no_role,              ///< a valid certificate or identity to which the configuration gives no role
  bad_identity,         ///< an identity that could be mistaken for something else in the audit log
  bad_signature,        ///< of an identity token: signature, key or algorithm
  bad_claims,           ///< of an identity token: issuer, audience, times, or a claim of a wrong type
  provider_unavailable  ///< the identity provider's keys cannot be had
};
std::string_view to_string(CredentialFault fault);

/// What a request shows of who sends it. Views live as long as the request.
struct Credentials {
  std::optional<std::string_view> authorization = {};     ///< the Authorization header (RFC 6750)
  std::optional<std::string_view> certificate_name = {};  ///< common name of a client certificate that TLS has verified
  std::string_view peer_address = {};                     ///< of the connection
  std::optional<std::string_view> proxy_secret = {};      ///< values of the configured proxy headers; nullopt when
  std::optional<std::string_view> proxy_identity = {};    ///< absent or sent twice
};

/// What an identity token says, after its signature, issuer, audience and times were checked.
struct IdentityClaims {
  std::string subject;
  std::vector<std::string> groups;  ///< values of oidc_role_claim
  std::optional<WallTime> expires_at;
};

/// Knows the credentials of a configuration, and keeps only keyed digests of tokens: looking one up costs the same
/// however many there are. Immutable; thread-safe.
///
/// The order of the reference (gateway.md 4.2): client certificate, trusted proxy, identity token, scoped token, static
/// token, auth_token. A certificate decides alone; so does a text that looks like an identity token where an issuer is
/// configured.
class Authenticator {
 public:
  virtual ~Authenticator() = default;

  /// From all credentials of the configuration. Refuses unknown roles and one token twice; messages never contain a
  /// token, but name its field.
  static Result<std::shared_ptr<const Authenticator>> create(const config::GatewayConfig& config, const Clock& clock);

  /// The identity token that the identity provider's keys must decide about; nullopt where authenticate() decides.
  [[nodiscard]] virtual std::optional<std::string_view> identity_token(const Credentials& credentials) const = 0;

  /// Who shows these credentials, identity tokens apart.
  [[nodiscard]] virtual std::expected<Principal, CredentialFault> authenticate(
      const Credentials& credentials) const = 0;

  /// Who a checked identity token speaks of: the highest role that oidc_role_map gives to one of its groups.
  [[nodiscard]] virtual std::expected<Principal, CredentialFault> from_claims(const IdentityClaims& claims) const = 0;

  /// What a credential that was accepted earlier is worth under this configuration and now: the same principal with the
  /// role and scope that it has today; nullopt if it would not be accepted. For calls that waited.
  [[nodiscard]] virtual std::optional<Principal> refresh(const Principal& earlier) const = 0;

  /// Whether the address is that of a trusted proxy.
  [[nodiscard]] virtual bool is_trusted_proxy(std::string_view address) const = 0;
};

/// How a token stands in the audit log: "token:" and 12 hexadecimal digits, the same after every start, and the same
/// whether the configuration holds the token or its hash.
std::string token_principal_name(std::string_view token);

/// The token of a well-formed "Bearer TOKEN" header, or the fault.
std::expected<std::string_view, CredentialFault> bearer_token(std::optional<std::string_view> authorization);

/// Whose request it is when it came through trusted proxies: the last address of X-Forwarded-For that is not a trusted
/// proxy's own; the peer's where the peer is no trusted proxy or the header is absent or broken. `is_trusted` tells
/// which addresses are proxies. At most 32 addresses are looked at.
std::string client_address(std::string_view peer_address, std::optional<std::string_view> forwarded_for,
                           const Authenticator& authenticator);

}  // namespace hive::policy
