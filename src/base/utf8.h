#pragma once

#include <cstddef>
#include <string>
#include <string_view>

/// UTF-8 as RFC 3629 defines it: no overlong forms, no surrogates, nothing above U+10FFFF.
namespace hive::utf8 {

struct Decoded {
  char32_t code_point = 0;
  size_t size_bytes = 1;  ///< bytes to step over; 1 when not valid
  bool valid = false;
};

/// Decodes the first code point of a non-empty text.
Decoded decode_first(std::string_view text);

[[nodiscard]] bool is_valid(std::string_view text);

/// A copy with each maximal invalid part replaced by U+FFFD.
std::string replace_invalid(std::string_view text);

/// The longest prefix of at most `max_bytes` bytes that does not cut a code point.
std::string_view truncate(std::string_view text, size_t max_bytes);

/// How many bytes at the end of `text` begin a code point that is not complete yet (0 to 3).
size_t incomplete_suffix(std::string_view text);

}  // namespace hive::utf8
