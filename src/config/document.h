#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.h"
#include "protocol/json.h"

namespace hive::config {

inline constexpr std::size_t max_document_bytes = std::size_t{4} << 20;
inline constexpr json::Limits document_limits{.max_bytes = max_document_bytes, .max_depth = 16, .max_values = 200'000};

/// The object that a configuration's text is, without what is around it. Failure says what is wrong and at which line,
/// and shows neither keys nor values: both can be secrets.
Result<std::string_view> find_document(std::string_view text);

/// What a raw JSON value is, for people: "an object", "a string".
std::string_view type_name(std::string_view raw);

}  // namespace hive::config
