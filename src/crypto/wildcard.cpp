#include "crypto/wildcard.h"

namespace hive::crypto {

bool wildcard_matches(std::string_view pattern, std::string_view text) {
  size_t at_pattern = 0;
  size_t at_text = 0;
  // Where to go on after a mismatch: only the last star can ever need another try.
  size_t after_star = std::string_view::npos;
  size_t star_text = 0;
  while (at_text < text.size()) {
    if (at_pattern < pattern.size() && pattern[at_pattern] == '*') {
      after_star = ++at_pattern;
      star_text = at_text;
    } else if (at_pattern < pattern.size() && (pattern[at_pattern] == '?' || pattern[at_pattern] == text[at_text])) {
      ++at_pattern;
      ++at_text;
    } else if (after_star != std::string_view::npos) {
      at_pattern = after_star;
      at_text = ++star_text;
    } else {
      return false;
    }
  }
  while (at_pattern < pattern.size() && pattern[at_pattern] == '*')
    ++at_pattern;
  return at_pattern == pattern.size();
}

}  // namespace hive::crypto
