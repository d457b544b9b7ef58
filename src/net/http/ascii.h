#pragma once

#include <algorithm>
#include <string>
#include <string_view>

/// Case in HTTP is the case of ASCII (RFC 9110 section 5.1), whatever the locale.
namespace hive::net::http {

constexpr char to_lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

inline std::string to_lower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower)
    c = to_lower(c);
  return lower;
}

constexpr bool equal_ignoring_case(std::string_view left, std::string_view right) {
  return std::ranges::equal(left, right, [](char a, char b) { return to_lower(a) == to_lower(b); });
}

}  // namespace hive::net::http
