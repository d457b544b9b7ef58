#pragma once

#include <string>
#include <string_view>

#include <fmt/format.h>

namespace hive::config::test {

/// The text of a file whose only key of interest is at `place` ("a", "a.b", "a[].b", "a{}.b").
inline std::string file_with(std::string_view place, std::string_view value) {
  std::size_t end = place.find_first_of("[{.");
  if (end == std::string_view::npos) return fmt::format(R"({{"{}":{}}})", place, value);
  std::string_view outer = place.substr(0, end);
  std::string_view rest = place.substr(end);
  std::string_view inner = rest.substr(rest.find('.') + 1);
  std::string object = fmt::format(R"({{"{}":{}}})", inner, value);
  if (rest.starts_with("[]")) object = fmt::format("[{}]", object);
  // "write" is a name that every such object accepts: a token, and a tier.
  if (rest.starts_with("{}")) object = fmt::format(R"({{"write":{}}})", object);
  return fmt::format(R"({{"{}":{}}})", outer, object);
}

}  // namespace hive::config::test
