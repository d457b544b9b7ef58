#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace hive {

/// Splits at every `separator`; "a,,b" has three parts, "" has one empty part.
std::vector<std::string_view> split(std::string_view text, char separator);

/// Without leading and trailing ASCII white space.
std::string_view trim(std::string_view text);

std::string join(std::span<const std::string> parts, std::string_view separator);

/// A whole decimal number with nothing around it; nullopt for anything else or out of range.
std::optional<std::int64_t> parse_int64(std::string_view text);

/// Lower-case hexadecimal.
std::string to_hex(std::span<const std::uint8_t> bytes);
Result<std::vector<std::uint8_t>> from_hex(std::string_view text);

/// Standard base64 with padding (RFC 4648 section 4).
std::string to_base64(std::span<const std::uint8_t> bytes);
/// Strict: canonical padding, no white space.
Result<std::vector<std::uint8_t>> from_base64(std::string_view text);

/// Text from elsewhere made safe for a terminal or a log line: control characters, C1 codes, bidirectional overrides
/// and invalid UTF-8 become \xNN or \u{NNNN} escapes. With `keep_newlines`, "\n" and "\t" stay.
std::string escape_for_terminal(std::string_view text, bool keep_newlines = false);

/// escape_for_terminal inside double quotes, with quotes and backslashes escaped as well.
std::string quote(std::string_view text);

/// The candidate with the smallest edit distance to `word`, if it is close enough to be what was meant.
std::optional<std::string_view> nearest_name(std::string_view word, std::span<const std::string_view> candidates);

/// Compares secrets in time that depends on the lengths alone.
bool constant_time_equal(std::string_view left, std::string_view right);

std::span<const std::uint8_t> as_bytes(std::string_view text);
std::string_view as_text(std::span<const std::uint8_t> bytes);

/// Whether `text` is an agent id: 1 to 64 characters of A-Z a-z 0-9 _ -, starting with a letter or digit, without "__",
/// and not the reserved word "gateway". Failure names the rule that is broken.
Result<void> check_agent_id(std::string_view text);

}  // namespace hive
