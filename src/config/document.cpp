#include "config/document.h"

#include <algorithm>
#include <optional>

#include "base/strings.h"
#include "config/duplicate_key.h"

namespace hive::config {

namespace {

std::string line_and_column(std::string_view text, std::size_t at) {
  std::string_view before = text.substr(0, at);
  std::size_t line_start = before.rfind('\n') == std::string_view::npos ? 0 : before.rfind('\n') + 1;
  return fmt::format("line {}, column {}", 1 + std::ranges::count(before, '\n'), 1 + before.size() - line_start);
}

// The JSON room says "at byte N"; people count lines.
std::string with_line(std::string_view text, std::string message) {
  constexpr std::string_view words = " at byte ";
  std::size_t start = message.find(words);
  if (start == std::string::npos) return message;
  std::size_t end = message.find_first_not_of("0123456789", start + words.size());
  if (end == std::string::npos) return message;
  std::optional<std::int64_t> at = parse_int64(std::string_view(message).substr(0, end).substr(start + words.size()));
  if (!at) return message;
  return fmt::format("{} at {}{}", message.substr(0, start), line_and_column(text, static_cast<std::size_t>(*at)),
                     message.substr(end));
}

}  // namespace

std::string_view type_name(std::string_view raw) {
  if (raw.empty()) return "nothing";
  switch (raw.front()) {
    case '{':
      return "an object";
    case '[':
      return "a list";
    case '"':
      return "a string";
    case 't':
    case 'f':
      return "true or false";
    case 'n':
      return "null";
    default:
      return "a number";
  }
}

Result<std::string_view> find_document(std::string_view text) {
  if (trim(text).empty()) {
    return fail(ErrorCode::invalid_argument, "the file is empty; a configuration is one JSON object");
  }
  if (text.starts_with("\xef\xbb\xbf")) {
    return fail(ErrorCode::invalid_argument, "the file starts with a byte order mark; save it as UTF-8 without one");
  }
  if (Result<void> valid = json::validate(text, document_limits); !valid) {
    // The key is not shown: the keys of "tokens" are secrets.
    std::optional<DuplicateKey> twice = text.size() <= max_document_bytes ? find_duplicate_key(text) : std::nullopt;
    if (twice) {
      return fail(ErrorCode::invalid_argument, "the key at {} stands in its object already, at {}; remove one of them",
                  line_and_column(text, twice->second), line_and_column(text, twice->first));
    }
    return fail(valid.error().code, "{}", with_line(text, valid.error().message));
  }
  std::string_view body = trim(text);
  if (!json::is_object(body)) {
    return fail(ErrorCode::invalid_argument, "expected one JSON object, found {}", type_name(body));
  }
  return body;
}

}  // namespace hive::config
