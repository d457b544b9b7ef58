#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "protocol/json.h"

/// Strict reading of request bodies. Messages are one line for the client and name the member.
namespace hive::rest {

inline constexpr std::size_t max_text_bytes = 256;

/// The members of a JSON object; one that is not among `known` is refused with the nearest known name, so that a typing
/// error cannot change what a request does in silence.
Result<std::vector<json::Member>> parse_members(std::string_view body, std::span<const std::string_view> known);

/// nullopt: absent or null. An empty text that is given stays one.
Result<std::optional<std::string>> optional_text(std::span<const json::Member> members, std::string_view key,
                                                 std::size_t max_bytes = max_text_bytes);
/// Absent and empty are refused.
Result<std::string> required_text(std::span<const json::Member> members, std::string_view key,
                                  std::size_t max_bytes = max_text_bytes);
/// nullopt: absent or null. At most `max_texts` texts of max_text_bytes.
Result<std::optional<std::vector<std::string>>> optional_texts(std::span<const json::Member> members,
                                                               std::string_view key, std::size_t max_texts = 256);
/// nullopt: absent or null.
Result<std::optional<bool>> optional_flag(std::span<const json::Member> members, std::string_view key);
/// nullopt: absent or null. A whole number from `min` to `max`.
Result<std::optional<std::int64_t>> optional_number(std::span<const json::Member> members, std::string_view key,
                                                    std::int64_t min, std::int64_t max);

}  // namespace hive::rest
