#include "protocol/json.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>
#include <deque>

#include "base/utf8.h"

namespace hive::json {

namespace {

bool is_white_space(char c) {
  return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

// Whether all eight bytes are printable ASCII other than '"' and '\': what most of a string consists of.
bool is_plain_word(const char* at) {
  constexpr std::uint64_t ones = 0x0101010101010101ULL;
  constexpr std::uint64_t highs = 0x8080808080808080ULL;
  std::uint64_t word = 0;
  std::memcpy(&word, at, 8);
  std::uint64_t quote = word ^ (ones * '"');
  std::uint64_t backslash = word ^ (ones * '\\');
  std::uint64_t special = ((word - ones * 0x20) | (quote - ones) | (backslash - ones)) & ~word;
  return ((special | word) & highs) == 0;
}

std::optional<std::uint32_t> four_hex_digits(std::string_view text) {
  if (text.size() < 4) return std::nullopt;
  std::uint32_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + 4, value, 16);
  if (error != std::errc() || end != text.data() + 4) return std::nullopt;
  return value;
}

void append_code_point(std::string& out, std::uint32_t code_point) {
  if (code_point < 0x80) {
    out += static_cast<char>(code_point);
  } else if (code_point < 0x800) {
    out += static_cast<char>(0xc0 | code_point >> 6);
    out += static_cast<char>(0x80 | (code_point & 0x3f));
  } else if (code_point < 0x10000) {
    out += static_cast<char>(0xe0 | code_point >> 12);
    out += static_cast<char>(0x80 | (code_point >> 6 & 0x3f));
    out += static_cast<char>(0x80 | (code_point & 0x3f));
  } else {
    out += static_cast<char>(0xf0 | code_point >> 18);
    out += static_cast<char>(0x80 | (code_point >> 12 & 0x3f));
    out += static_cast<char>(0x80 | (code_point >> 6 & 0x3f));
    out += static_cast<char>(0x80 | (code_point & 0x3f));
  }
}

// Decodes the inside of a string whose grammar has been checked.
std::string decode_checked(std::string_view inside) {
  std::string decoded;
  decoded.reserve(inside.size());
  for (size_t i = 0; i < inside.size(); ++i) {
    if (inside[i] != '\\') {
      decoded += inside[i];
      continue;
    }
    switch (inside[++i]) {
      case 'b':
        decoded += '\b';
        break;
      case 'f':
        decoded += '\f';
        break;
      case 'n':
        decoded += '\n';
        break;
      case 'r':
        decoded += '\r';
        break;
      case 't':
        decoded += '\t';
        break;
      case 'u': {
        std::uint32_t unit = four_hex_digits(inside.substr(i + 1)).value_or(0xfffd);
        i += 4;
        if (unit >= 0xd800 && unit < 0xdc00) {
          std::uint32_t low = four_hex_digits(inside.substr(i + 3)).value_or(0xdc00);
          unit = 0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00);
          i += 6;
        }
        append_code_point(decoded, unit);
        break;
      }
      default:
        decoded += inside[i];
    }
  }
  return decoded;
}

// One pass over a text; every skip_ function leaves `at_` behind what it read, or sets `problem_` and returns false.
class Scanner {
 public:
  Scanner(std::string_view text, const Limits& limits) : text_(text), limits_(limits) {}

  Result<void> whole_value() {
    if (!begin()) return error();
    if (!skip_value() || !end()) return error();
    return {};
  }

  Result<std::vector<Member>> whole_object() {
    std::vector<Member> members;
    if (!begin()) return error();
    if (at_ >= text_.size() || text_[at_] != '{') {
      problem_ = "expected an object";
      return error();
    }
    if (!skip_object(&members) || !end()) return error();
    return members;
  }

  Result<std::vector<std::string_view>> whole_array() {
    std::vector<std::string_view> elements;
    if (!begin()) return error();
    if (at_ >= text_.size() || text_[at_] != '[') {
      problem_ = "expected an array";
      return error();
    }
    if (!skip_array(&elements) || !end()) return error();
    return elements;
  }

 private:
  bool begin() {
    if (text_.size() > limits_.max_bytes) {
      too_large_ = true;
      problem_ = "larger than the limit";
      return false;
    }
    skip_white_space();
    return true;
  }

  bool end() {
    skip_white_space();
    if (at_ != text_.size()) return wrong("text after the value");
    return true;
  }

  std::unexpected<Error> error() const {
    if (too_large_) {
      return fail(ErrorCode::resource_exhausted, "JSON of {} bytes is larger than the limit of {}", text_.size(),
                  limits_.max_bytes);
    }
    return fail(limit_reached_ ? ErrorCode::resource_exhausted : ErrorCode::invalid_argument,
                "not acceptable JSON at byte {}: {}", at_, problem_);
  }

  bool wrong(std::string_view problem) {
    problem_ = problem;
    return false;
  }

  bool over_limit(std::string_view problem) {
    limit_reached_ = true;
    return wrong(problem);
  }

  void skip_white_space() {
    while (at_ < text_.size() && is_white_space(text_[at_]))
      ++at_;
  }

  bool skip_value() {
    if (++values_ > limits_.max_values) return over_limit("too many values");
    if (at_ >= text_.size()) return wrong("the text ends where a value is expected");
    switch (text_[at_]) {
      case '{':
        return skip_object(nullptr);
      case '[':
        return skip_array(nullptr);
      case '"':
        return skip_string();
      case 't':
        return skip_word("true");
      case 'f':
        return skip_word("false");
      case 'n':
        return skip_word("null");
      default:
        return skip_number();
    }
  }

  bool skip_word(std::string_view word) {
    if (text_.substr(at_, word.size()) != word) return wrong("unknown word");
    at_ += word.size();
    return true;
  }

  bool skip_digits() {
    size_t first = at_;
    while (at_ < text_.size() && is_digit(text_[at_]))
      ++at_;
    return at_ > first || wrong("expected a digit");
  }

  bool skip_number() {
    if (text_[at_] == '-') ++at_;
    if (at_ < text_.size() && text_[at_] == '0') {
      ++at_;
    } else if (at_ >= text_.size() || !is_digit(text_[at_])) {
      return wrong("expected a value");
    } else if (!skip_digits()) {
      return false;
    }
    if (at_ < text_.size() && text_[at_] == '.') {
      ++at_;
      if (!skip_digits()) return false;
    }
    if (at_ < text_.size() && (text_[at_] == 'e' || text_[at_] == 'E')) {
      ++at_;
      if (at_ < text_.size() && (text_[at_] == '+' || text_[at_] == '-')) ++at_;
      if (!skip_digits()) return false;
    }
    return true;
  }

  bool skip_string() {
    saw_escape_ = false;
    ++at_;
    while (true) {
      while (at_ + 8 <= text_.size() && is_plain_word(text_.data() + at_))
        at_ += 8;
      if (at_ >= text_.size()) return wrong("a string without an end");
      auto c = static_cast<unsigned char>(text_[at_]);
      if (c == '"') {
        ++at_;
        return true;
      }
      if (c < 0x20) return wrong("a control character in a string");
      if (c == '\\') {
        saw_escape_ = true;
        if (!skip_escape()) return false;
      } else if (c < 0x80) {
        ++at_;
      } else {
        utf8::Decoded decoded = utf8::decode_first(text_.substr(at_));
        if (!decoded.valid) return wrong("invalid UTF-8");
        at_ += decoded.size_bytes;
      }
    }
  }

  bool skip_escape() {
    std::string_view rest = text_.substr(at_);
    if (rest.size() < 2) return wrong("a string without an end");
    if (rest[1] != 'u') {
      if (std::string_view("\"\\/bfnrt").find(rest[1]) == std::string_view::npos) return wrong("unknown escape");
      at_ += 2;
      return true;
    }
    std::optional<std::uint32_t> unit = four_hex_digits(rest.substr(2));
    if (!unit) return wrong("\\u without four hexadecimal digits");
    at_ += 6;
    if (*unit >= 0xdc00 && *unit < 0xe000) return wrong("a lone surrogate");
    if (*unit >= 0xd800 && *unit < 0xdc00) {
      std::optional<std::uint32_t> low;
      if (text_.substr(at_, 2) == "\\u") low = four_hex_digits(text_.substr(at_ + 2));
      if (!low || *low < 0xdc00 || *low >= 0xe000) return wrong("a lone surrogate");
      at_ += 6;
    }
    return true;
  }

  bool skip_array(std::vector<std::string_view>* elements) {
    if (++depth_ > limits_.max_depth) return over_limit("nested too deeply");
    ++at_;
    skip_white_space();
    if (at_ < text_.size() && text_[at_] == ']') {
      ++at_;
      --depth_;
      return true;
    }
    while (true) {
      skip_white_space();
      size_t first = at_;
      if (!skip_value()) return false;
      if (elements != nullptr) elements->push_back(text_.substr(first, at_ - first));
      skip_white_space();
      if (at_ >= text_.size()) return wrong("an array without an end");
      char c = text_[at_];
      if (c != ',' && c != ']') return wrong("expected ',' or ']'");
      ++at_;
      if (c == ']') {
        --depth_;
        return true;
      }
    }
  }

  bool skip_object(std::vector<Member>* members) {
    if (++depth_ > limits_.max_depth) return over_limit("nested too deeply");
    size_t first_key = keys_.size();
    ++at_;
    skip_white_space();
    if (at_ < text_.size() && text_[at_] == '}') {
      ++at_;
      --depth_;
      return true;
    }
    while (true) {
      skip_white_space();
      if (at_ >= text_.size() || text_[at_] != '"') return wrong("expected a key in quotes");
      size_t key_start = at_;
      if (!skip_string()) return false;
      std::string_view key = text_.substr(key_start + 1, at_ - key_start - 2);
      if (saw_escape_) key = decoded_keys_.emplace_back(decode_checked(key));
      keys_.push_back(key);
      skip_white_space();
      if (at_ >= text_.size() || text_[at_] != ':') return wrong("expected ':'");
      ++at_;
      skip_white_space();
      size_t value_start = at_;
      if (!skip_value()) return false;
      if (members != nullptr) members->push_back({std::string(key), text_.substr(value_start, at_ - value_start)});
      skip_white_space();
      if (at_ >= text_.size()) return wrong("an object without an end");
      char c = text_[at_];
      if (c != ',' && c != '}') return wrong("expected ',' or '}'");
      if (c == '}') break;
      ++at_;
    }
    if (has_duplicates(std::span(keys_).subspan(first_key))) return wrong("the object ending here repeats a key");
    ++at_;
    keys_.resize(first_key);
    --depth_;
    return true;
  }

  // Sorts the keys of large objects, which nobody needs in order any more.
  static bool has_duplicates(std::span<std::string_view> keys) {
    if (keys.size() > 16) {
      std::sort(keys.begin(), keys.end());
      return std::adjacent_find(keys.begin(), keys.end()) != keys.end();
    }
    for (size_t i = 0; i < keys.size(); ++i) {
      for (size_t k = i + 1; k < keys.size(); ++k) {
        if (keys[i] == keys[k]) return true;
      }
    }
    return false;
  }

  std::string_view text_;
  const Limits& limits_;
  size_t at_ = 0;
  size_t depth_ = 0;
  size_t values_ = 0;
  bool saw_escape_ = false;
  bool too_large_ = false;
  bool limit_reached_ = false;
  std::string_view problem_;
  std::vector<std::string_view> keys_;
  std::deque<std::string> decoded_keys_;
};

}  // namespace

Result<void> validate(std::string_view text, const Limits& limits) {
  return Scanner(text, limits).whole_value();
}

Result<std::vector<Member>> parse_object(std::string_view text, const Limits& limits) {
  return Scanner(text, limits).whole_object();
}

Result<std::vector<std::string_view>> parse_array(std::string_view text, const Limits& limits) {
  return Scanner(text, limits).whole_array();
}

std::optional<std::string_view> find(std::span<const Member> members, std::string_view key) {
  for (const Member& member : members) {
    if (member.key == key) return member.value;
  }
  return std::nullopt;
}

std::optional<std::string> decode_string(std::string_view raw) {
  if (raw.size() < 2 || raw.front() != '"' || raw.back() != '"') return std::nullopt;
  if (!validate(raw, {.max_bytes = raw.size()})) return std::nullopt;
  return decode_checked(raw.substr(1, raw.size() - 2));
}

std::optional<std::int64_t> decode_integer(std::string_view raw) {
  std::int64_t value = 0;
  auto [end, error] = std::from_chars(raw.data(), raw.data() + raw.size(), value);
  if (error != std::errc() || end != raw.data() + raw.size()) return std::nullopt;
  return value;
}

std::optional<bool> decode_boolean(std::string_view raw) {
  if (raw == "true") return true;
  if (raw == "false") return false;
  return std::nullopt;
}

bool is_object(std::string_view raw) {
  return raw.starts_with('{');
}
bool is_array(std::string_view raw) {
  return raw.starts_with('[');
}
bool is_string(std::string_view raw) {
  return raw.starts_with('"');
}
bool is_null(std::string_view raw) {
  return raw == "null";
}

void append_string(std::string& out, std::string_view text) {
  std::string repaired;
  if (!utf8::is_valid(text)) {
    repaired = utf8::replace_invalid(text);
    text = repaired;
  }
  out += '"';
  while (!text.empty()) {
    size_t plain = 0;
    while (plain + 8 <= text.size() && is_plain_word(text.data() + plain))
      plain += 8;
    while (plain < text.size()) {
      auto c = static_cast<unsigned char>(text[plain]);
      bool separator =
          c == 0xe2 && (text.substr(plain, 3) == "\xe2\x80\xa8" || text.substr(plain, 3) == "\xe2\x80\xa9");
      bool next_line = c == 0xc2 && text.substr(plain, 2) == "\xc2\x85";
      if (c < 0x20 || c == 0x7f || c == '"' || c == '\\' || separator || next_line) break;
      ++plain;
    }
    out += text.substr(0, plain);
    text.remove_prefix(plain);
    if (text.empty()) break;
    auto c = static_cast<unsigned char>(text[0]);
    size_t used = 1;
    switch (c) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\r':
        out += "\\r";
        break;
      case '\t':
        out += "\\t";
        break;
      case 0xe2:
        out += text[2] == '\xa8' ? "\\u2028" : "\\u2029";
        used = 3;
        break;
      case 0xc2:
        out += "\\u0085";
        used = 2;
        break;
      default:
        out += fmt::format("\\u{:04x}", c);
    }
    text.remove_prefix(used);
  }
  out += '"';
}

std::string encode_string(std::string_view text) {
  std::string encoded;
  encoded.reserve(text.size() + 2);
  append_string(encoded, text);
  return encoded;
}

}  // namespace hive::json
