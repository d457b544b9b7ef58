#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"

namespace hive::policy {

enum class Role { read_only, operator_, admin };

std::string_view to_string(Role role);
/// "admin", "operator", "read-only".
std::optional<Role> role_from_string(std::string_view name);

/// By what a caller proved who it is.
enum class CredentialKind {
  token,
  scoped_token,
  certificate,  ///< of a TLS client
  proxy,        ///< a trusted proxy says so
  oidc,         ///< a token of the identity provider
  internal,     ///< the gateway itself
};
std::string_view to_string(CredentialKind kind);
std::optional<CredentialKind> credential_kind_from_string(std::string_view name);

/// The part of the fleet that a credential reaches: agents that are named or have one of the tags, and of these the
/// named tools. Names may be globs with "*".
struct Scope {
  std::vector<std::string> agents;
  std::vector<std::string> tags;
  std::vector<std::string> tools;
  std::string field;  ///< the configuration field that says so: "scoped_tokens[2]"
};

/// What is known of a caller beyond name and role. Immutable and shared, because every call carries it.
struct Grant {
  CredentialKind kind = CredentialKind::token;
  std::string identity;             ///< the person or machine, the same for all its credentials; empty: the name
  std::vector<std::string> groups;  ///< as the identity provider says
  std::optional<Scope> scope;       ///< nullopt: the whole fleet
  std::string rule;                 ///< the configuration line that gave the role: "gateway.json:7: tokens[2]"
  std::optional<WallTime> expires_at;
};

/// Who is calling. Carries no credential.
struct Principal {
  std::string name;  ///< as it stands in the audit log: an identity, or the fingerprint of a token
  Role role = Role::read_only;
  std::shared_ptr<const Grant> grant = {};  ///< null: an empty Grant

  /// Who this is, whichever credential was shown.
  [[nodiscard]] const std::string& identity() const {
    return grant == nullptr || grant->identity.empty() ? name : grant->identity;
  }
  /// nullptr: the whole fleet.
  [[nodiscard]] const Scope* scope() const { return grant == nullptr || !grant->scope ? nullptr : &*grant->scope; }
};

}  // namespace hive::policy
