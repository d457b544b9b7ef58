#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "config/gateway_config.h"
#include "crypto/sha256.h"

namespace hive::policy {

/// Longest static token, and longest bearer token of any kind: identity tokens carry lists of groups.
inline constexpr std::size_t max_static_token_bytes = 4096;
inline constexpr std::size_t max_bearer_token_bytes = 16'384;

/// Whether the text can stand in a "Bearer" header: visible ASCII without blanks, 1 byte to `max_bytes`.
bool is_bearer_text(std::string_view text, std::size_t max_bytes);

/// SHA-256 of a configured token: computed from the token, or read from "sha256:" and 64 lower-case hexadecimal digits.
/// nullopt where no caller could ever show it.
std::optional<crypto::Digest> token_digest(const config::Secret& configured);

/// The name of the principal whose token has this SHA-256.
std::string token_principal_name(const crypto::Digest& digest_of_token);

}  // namespace hive::policy
