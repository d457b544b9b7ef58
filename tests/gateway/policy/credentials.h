#pragma once

#include <string>
#include <string_view>

#include "gateway/policy/authenticator.h"

namespace hive::policy {

/// What a caller shows who comes with nothing but an Authorization header.
inline Credentials with_header(std::optional<std::string_view> header) {
  Credentials credentials;
  credentials.authorization = header;
  credentials.peer_address = "192.0.2.7";
  return credentials;
}

inline config::StaticToken static_token(std::string token, std::string role, std::string identity = "",
                                        std::string field = "") {
  return {config::Secret(std::move(token)), std::move(role), std::move(identity), std::move(field)};
}

/// "sha256:" and the hash of the token, as a configuration holds it.
std::string hashed(std::string_view token);

}  // namespace hive::policy
