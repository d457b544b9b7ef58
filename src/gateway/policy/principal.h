#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace hive::policy {

enum class Role { read_only, operator_, admin };

std::string_view to_string(Role role);
/// "admin", "operator", "read-only".
std::optional<Role> role_from_string(std::string_view name);

/// Who is calling. Carries no credential.
struct Principal {
  std::string name;  ///< as it stands in the audit log: an identity, or the fingerprint of a token
  Role role = Role::read_only;
};

}  // namespace hive::policy
