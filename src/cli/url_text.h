#pragma once

#include <string>
#include <string_view>

namespace hive::cli {

/// A text as the value of a query parameter (RFC 3986 section 2.1): everything but unreserved characters is encoded.
std::string percent_encoded(std::string_view text);

}  // namespace hive::cli
