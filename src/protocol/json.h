#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

/// Strict JSON (RFC 8259) from hostile peers: one pass over the text checks grammar, UTF-8, depth, number of values and
/// duplicate keys, before anything is built. Values that only pass through stay raw text, byte for byte.
/// For reading documents use parse(), which checks with the same limits and then builds a boost::json::value.
namespace hive::json {

struct Limits {
  size_t max_bytes = size_t{1} << 20;
  size_t max_depth = 64;
  size_t max_values = 100'000;
};

/// A member of an object: its decoded key and the raw text of its value.
struct Member {
  std::string key;
  std::string_view value;
};

/// Whether `text` is exactly one JSON value within the limits. The message says what is wrong and at which byte.
Result<void> validate(std::string_view text, const Limits& limits = {});

/// Validates the whole text, which must be an object, and returns its members in order; the values are views into
/// `text`.
Result<std::vector<Member>> parse_object(std::string_view text, const Limits& limits = {});

/// The same for an array: the raw text of each element.
Result<std::vector<std::string_view>> parse_array(std::string_view text, const Limits& limits = {});

/// The raw value of `key`, or nullopt.
std::optional<std::string_view> find(std::span<const Member> members, std::string_view key);

/// Decodes a raw JSON string value ("\"a\\n\"" to "a<newline>"); nullopt if the raw value is not a string.
std::optional<std::string> decode_string(std::string_view raw);

/// Decodes a raw JSON integer without fraction or exponent; nullopt for anything else or out of range.
std::optional<std::int64_t> decode_integer(std::string_view raw);

/// Decodes "true" or "false".
std::optional<bool> decode_boolean(std::string_view raw);

[[nodiscard]] bool is_object(std::string_view raw);
[[nodiscard]] bool is_array(std::string_view raw);
[[nodiscard]] bool is_string(std::string_view raw);
[[nodiscard]] bool is_null(std::string_view raw);

/// Appends `text` as a JSON string with quotes. Invalid UTF-8 becomes U+FFFD; control characters, U+2028 and U+2029 are
/// escaped, so that the result never breaks a line.
void append_string(std::string& out, std::string_view text);
std::string encode_string(std::string_view text);

}  // namespace hive::json
