#include "config/reader.h"

#include <algorithm>
#include <charconv>
#include <filesystem>

#include "base/strings.h"
#include "config/document.h"
#include "protocol/json.h"

namespace hive::config {

namespace {

constexpr std::size_t max_problems = 50;
constexpr std::size_t max_shown_key_bytes = 256;

std::string folder_of(const std::string& path) {
  std::error_code error;
  std::filesystem::path absolute = std::filesystem::absolute(path, error);
  return (error ? std::filesystem::path(path) : absolute).lexically_normal().parent_path().string();
}

bool has_control_character(std::string_view text) {
  return std::ranges::any_of(text, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
}

}  // namespace

Reader::Reader(std::string_view text, std::string path, const SecretSources& sources)
    : text_(text), path_(std::move(path)), folder_(folder_of(path_)), line_starts_{0}, sources_(sources) {
  for (std::size_t at = text_.find('\n'); at != std::string_view::npos; at = text_.find('\n', at + 1)) {
    line_starts_.push_back(at + 1);
  }
}

std::optional<Value> Reader::document() {
  Result<std::string_view> body = find_document(text_);
  if (body) return Value{.field = "", .raw = *body};
  record(fmt::format("{}: {}", path_, body.error().message));
  return std::nullopt;
}

void Reader::record(std::string line) {
  if (problems_.size() < max_problems) {
    problems_.push_back(std::move(line));
  } else {
    ++problems_left_out_;
  }
}

std::size_t Reader::line_of(std::string_view raw) const {
  auto offset = static_cast<std::size_t>(raw.data() - text_.data());
  return static_cast<std::size_t>(std::ranges::upper_bound(line_starts_, offset) - line_starts_.begin());
}

void Reader::problem(const Value& at, std::string_view message) {
  if (at.field.empty()) {
    record(fmt::format("{}:{}: {}", path_, line_of(at.raw), message));
  } else {
    record(fmt::format("{}:{}: {}: {}", path_, line_of(at.raw), at.field, message));
  }
}

void Reader::problem_with_file(std::string_view message) {
  record(fmt::format("{}: {}", path_, message));
}

void Reader::unknown_key(const Value& at, std::string_view key, std::span<const std::string_view> known) {
  std::string lower(key);
  std::ranges::transform(lower, lower.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? char(c - 'A' + 'a') : c; });
  std::string hint;
  if (std::optional<std::string_view> nearest = nearest_name(lower, known)) {
    hint = fmt::format("; did you mean \"{}\"?", *nearest);
  } else {
    hint = "; remove it, or start its name with \"_comment\" if it is a note";
  }
  problem(at, fmt::format("unknown key{}", hint));
}

std::optional<std::string> Reader::wrong_type(const Value& value, std::string_view expected) {
  problem(value, fmt::format("expected {}, found {}", expected, type_name(value.raw)));
  return std::nullopt;
}

std::optional<std::string> Reader::string(const Value& value) {
  std::optional<std::string> text = json::decode_string(value.raw);
  if (!text) return wrong_type(value, "a string");
  if (has_control_character(*text)) {
    problem(value, "must not contain control characters or line breaks");
    return std::nullopt;
  }
  return text;
}

std::optional<std::string> Reader::non_empty_string(const Value& value) {
  std::optional<std::string> text = string(value);
  if (text && text->empty()) {
    problem(value, "must not be empty");
    return std::nullopt;
  }
  return text;
}

std::optional<std::int64_t> Reader::integer(const Value& value, std::int64_t min, std::int64_t max) {
  std::string expected = fmt::format("a whole number from {} to {}", min, max);
  bool is_number = type_name(value.raw) == "a number";
  std::optional<std::int64_t> number = json::decode_integer(value.raw);
  if (number && *number >= min && *number <= max) return number;
  if (is_number) {
    problem(value, fmt::format("expected {}, found {}", expected, value.raw.substr(0, 32)));
  } else {
    wrong_type(value, expected);
  }
  return std::nullopt;
}

std::optional<double> Reader::number(const Value& value, double min, double max) {
  std::string expected = fmt::format("a number from {} to {}", min, max);
  if (type_name(value.raw) != "a number") {
    wrong_type(value, expected);
    return std::nullopt;
  }
  double result = 0;
  auto [end, status] = std::from_chars(value.raw.data(), value.raw.data() + value.raw.size(), result);
  if (status == std::errc{} && end == value.raw.data() + value.raw.size() && result >= min && result <= max) {
    return result;
  }
  problem(value, fmt::format("expected {}, found {}", expected, value.raw.substr(0, 32)));
  return std::nullopt;
}

std::optional<bool> Reader::boolean(const Value& value) {
  std::optional<bool> result = json::decode_boolean(value.raw);
  if (!result) wrong_type(value, "true or false");
  return result;
}

std::vector<Value> Reader::elements(const Value& value) {
  std::vector<Value> values;
  Result<std::vector<std::string_view>> parts = json::parse_array(value.raw, document_limits);
  if (!parts) {
    wrong_type(value, "a list");
    return values;
  }
  values.reserve(parts->size());
  for (std::size_t index = 0; index < parts->size(); ++index) {
    values.push_back({.field = fmt::format("{}[{}]", value.field, index), .raw = (*parts)[index]});
    lines_.emplace(values.back().field, line_of(values.back().raw));
  }
  return values;
}

std::vector<std::pair<std::string, Value>> Reader::members(const Value& value) {
  return members(value, Naming::by_key);
}

std::vector<std::pair<std::string, Value>> Reader::secret_members(const Value& value) {
  return members(value, Naming::by_number);
}

std::vector<std::pair<std::string, Value>> Reader::members(const Value& value, Naming naming) {
  std::vector<std::pair<std::string, Value>> values;
  Result<std::vector<json::Member>> parts = json::parse_object(value.raw, document_limits);
  if (!parts) {
    wrong_type(value, "an object");
    return values;
  }
  for (json::Member& member : *parts) {
    // null means "not set": the reference wrote lists that were never set that way.
    if (member.key.starts_with("_comment") || json::is_null(member.value)) continue;
    Value place{.field = {}, .raw = member.value};
    if (naming == Naming::by_number) {
      place.field = fmt::format("{}[{}]", value.field, values.size());
    } else {
      std::string shown = escape_for_terminal(std::string_view(member.key).substr(0, max_shown_key_bytes));
      place.field = value.field.empty() ? shown : value.field + "." + shown;
    }
    lines_.emplace(place.field, line_of(place.raw));
    values.emplace_back(std::move(member.key), std::move(place));
  }
  return values;
}

std::vector<std::string> Reader::string_list(const Value& value) {
  std::vector<std::string> texts;
  for (const Value& element : elements(value)) {
    if (std::optional<std::string> text = non_empty_string(element)) texts.push_back(*std::move(text));
  }
  return texts;
}

std::optional<std::string> Reader::path(const Value& value) {
  std::optional<std::string> text = string(value);
  if (!text || text->empty()) return text;
  if (text->starts_with("~")) {
    problem(value, "\"~\" is not expanded; write the whole path");
    return std::nullopt;
  }
  if (text->starts_with('/')) return text;
  return (std::filesystem::path(folder_) / *text).lexically_normal().string();
}

std::optional<std::string> Reader::string_or_reference(const Value& value) {
  std::optional<std::string> text = string(value);
  if (!text || !is_secret_reference(*text)) return text;
  Result<std::string> resolved = resolve_secret(*text, sources_);
  if (!resolved) {
    problem(value, resolved.error().message);
    return std::nullopt;
  }
  if (has_control_character(*resolved)) {
    problem(value, fmt::format("{} resolves to a text with control characters or line breaks", quote(*text)));
    return std::nullopt;
  }
  return *std::move(resolved);
}

std::optional<Secret> Reader::referred_text(const Value& value, std::string_view remedy) {
  std::optional<std::string> text = json::decode_string(value.raw);
  if (!text) {
    wrong_type(value, "a string");
    return std::nullopt;
  }
  if (!is_secret_reference(trim(*text))) {
    problem(value, fmt::format("must not stand in the file; {}", remedy));
    return std::nullopt;
  }
  Result<std::string> resolved = resolve_secret(trim(*text), sources_);
  if (resolved) return Secret(*std::move(resolved));
  problem(value, resolved.error().message);
  return std::nullopt;
}

std::optional<Secret> Reader::secret(const Value& value) {
  std::optional<std::string> text = json::decode_string(value.raw);
  if (!text) {
    wrong_type(value, "a string");
    return std::nullopt;
  }
  bool is_plain = false;
  std::optional<std::string> secret = reveal(value, *text, is_plain);
  if (!secret) return std::nullopt;
  holds_plain_secret_ = holds_plain_secret_ || is_plain;
  return Secret(*std::move(secret));
}

std::optional<Secret> Reader::token(const Value& value) {
  std::optional<std::string> text = json::decode_string(value.raw);
  if (text) return token_text(value, *text);
  wrong_type(value, "a string");
  return std::nullopt;
}

std::optional<Secret> Reader::token_text(const Value& at, std::string_view text) {
  bool is_plain = false;
  std::optional<std::string> token = reveal(at, text, is_plain);
  if (!token) return std::nullopt;
  if (token->starts_with("sha256:")) {
    if (!token_hash(*token)) {
      problem(at, "\"sha256:\" must be followed by the 64 lower-case hexadecimal digits that myrmex token hash prints");
      return std::nullopt;
    }
  } else if (token->contains(' ')) {
    problem(at, "a token must not contain blanks; make one with: openssl rand -hex 32");
    return std::nullopt;
  } else {
    // A hash opens nothing, so a file that holds no more may be read by others.
    holds_plain_secret_ = holds_plain_secret_ || is_plain;
  }
  return Secret(*std::move(token));
}

std::optional<std::string> Reader::reveal(const Value& at, std::string_view text, bool& is_plain) {
  std::string value;
  is_plain = !is_secret_reference(trim(text));
  if (is_plain) {
    value = std::string(trim(text));
    if (value.empty()) {
      problem(at, "the secret is empty; make one with: openssl rand -hex 32");
      return std::nullopt;
    }
  } else {
    Result<std::string> resolved = resolve_secret(trim(text), sources_);
    if (!resolved) {
      problem(at, resolved.error().message);
      return std::nullopt;
    }
    value = *std::move(resolved);
  }
  // RFC 6750 bearer tokens and HTTP header values travel as visible ASCII.
  if (!std::ranges::all_of(value, [](char c) { return c >= 0x20 && c <= 0x7e; })) {
    problem(at, "the secret has control or non-ASCII characters; make one with: openssl rand -hex 32");
    return std::nullopt;
  }
  return value;
}

std::optional<std::string> Reader::one_of(const Value& value, std::span<const std::string_view> allowed) {
  std::optional<std::string> text = string(value);
  if (!text || std::ranges::find(allowed, *text) != allowed.end()) return text;
  problem(value, fmt::format("expected one of {}, found {}", fmt::join(allowed, ", "),
                             quote(std::string_view(*text).substr(0, 64))));
  return std::nullopt;
}

Error Reader::error() const {
  std::string message = join(problems_, "\n");
  if (problems_left_out_ > 0) message += fmt::format("\n{}: and {} more problems", path_, problems_left_out_);
  return Error{ErrorCode::invalid_argument, std::move(message)};
}

std::optional<std::string_view> token_hash(std::string_view token) {
  constexpr std::string_view prefix = "sha256:";
  if (!token.starts_with(prefix)) return std::nullopt;
  token.remove_prefix(prefix.size());
  if (token.size() != 64 || token.find_first_not_of("0123456789abcdef") != std::string_view::npos) return std::nullopt;
  return token;
}

bool says_something(std::string_view raw) {
  if (raw == "null" || raw == "false" || raw == "0" || raw == "\"\"") return false;
  if (raw.starts_with('[') || raw.starts_with('{')) {
    return !trim(raw.substr(1, raw.size() - 2)).empty();
  }
  return true;
}

}  // namespace hive::config
