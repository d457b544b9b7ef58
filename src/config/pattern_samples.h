#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hive::config {

/// What a look at an RE2 pattern as text tells: good enough for examples and explanations, never for decisions. Callers
/// try every sample against the compiled pattern before they believe it.
struct PatternOutline {
  /// Texts that the pattern probably matches as a whole; every alternative stands in at least one. At most 64.
  std::vector<std::string> samples;
  /// How many texts it matches, when that is a small number and `samples` holds them all.
  std::optional<std::size_t> finite_count;
  /// The alternatives of the outermost level, when there is more than one.
  std::vector<std::string> alternatives;
};

/// nullopt for a pattern whose syntax is beyond this sketch.
std::optional<PatternOutline> outline_pattern(std::string_view pattern);

}  // namespace hive::config
