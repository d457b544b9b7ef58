#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace hive::config {

/// Where a key stands for the second time in its object, and where it stood first: byte offsets.
struct DuplicateKey {
  std::size_t first = 0;
  std::size_t second = 0;
};

/// Finds the first repeated key in a JSON text. The text may be wrong in other ways; what cannot be followed is not
/// looked into.
std::optional<DuplicateKey> find_duplicate_key(std::string_view text);

}  // namespace hive::config
