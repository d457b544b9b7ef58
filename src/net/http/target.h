#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace hive::net::http {

/// What a request-target (RFC 9112 section 3.2) asks for.
struct Target {
  std::string path;  ///< percent-decoded
  std::string query;
  std::string authority;  ///< of the absolute form; it replaces the Host header
};

/// Parses the origin form, the absolute form, and "*" for OPTIONS. One path has one spelling here: anything that
/// different readers could understand differently is refused (encoded slashes, "." and ".." segments, control
/// characters, invalid UTF-8). The message is one line for the client.
Result<Target> parse_target(std::string_view raw, std::string_view method);

/// Decodes %XX; nullopt for a broken escape, a NUL or invalid UTF-8.
std::optional<std::string> percent_decode(std::string_view text);

/// The same for a key or value of a query string, where "+" stands for a blank.
std::optional<std::string> decode_query_component(std::string_view text);

}  // namespace hive::net::http
