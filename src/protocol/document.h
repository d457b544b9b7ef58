#pragma once

#include <string_view>

#include <boost/json/value.hpp>

#include "base/result.h"
#include "protocol/json.h"

namespace hive::json {

/// Checks `text` with the limits, then builds the document.
Result<boost::json::value> parse(std::string_view text, const Limits& limits = {});

/// Indented by two spaces, keys in their order, with a final newline.
std::string to_pretty_text(const boost::json::value& value);

}  // namespace hive::json
