#include "gateway/policy/principal.h"

#include <array>

namespace hive::policy {

namespace {

constexpr std::array<std::string_view, 3> role_names = {"read-only", "operator", "admin"};
constexpr std::array<std::string_view, 6> kind_names = {"token", "scoped_token", "certificate",
                                                        "proxy", "oidc",         "internal"};

template <class Enum, std::size_t count>
std::optional<Enum> find_name(const std::array<std::string_view, count>& names, std::string_view name) {
  for (std::size_t i = 0; i < count; ++i) {
    if (names[i] == name) return static_cast<Enum>(i);
  }
  return std::nullopt;
}

}  // namespace

std::string_view to_string(Role role) {
  return role_names[static_cast<std::size_t>(role)];
}

std::optional<Role> role_from_string(std::string_view name) {
  return find_name<Role>(role_names, name);
}

std::string_view to_string(CredentialKind kind) {
  return kind_names[static_cast<std::size_t>(kind)];
}

std::optional<CredentialKind> credential_kind_from_string(std::string_view name) {
  return find_name<CredentialKind>(kind_names, name);
}

}  // namespace hive::policy
