#pragma once

#include <string_view>

namespace hive::crypto {

/// Whether the whole of `text` matches a pattern of ssh_config(5) PATTERNS: "*" for any characters, "?" for exactly
/// one. Takes time proportional to the product of the lengths at worst.
bool wildcard_matches(std::string_view pattern, std::string_view text);

}  // namespace hive::crypto
