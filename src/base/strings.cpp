#include "base/strings.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "base/utf8.h"

namespace hive {

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    size_t end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

std::string_view trim(std::string_view text) {
  constexpr std::string_view white_space = " \t\r\n\v\f";
  size_t begin = text.find_first_not_of(white_space);
  if (begin == std::string_view::npos) return {};
  size_t end = text.find_last_not_of(white_space);
  return text.substr(begin, end - begin + 1);
}

std::string join(std::span<const std::string> parts, std::string_view separator) {
  std::string joined;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (i > 0) joined += separator;
    joined += parts[i];
  }
  return joined;
}

std::optional<std::int64_t> parse_int64(std::string_view text) {
  std::int64_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::string to_hex(std::span<const std::uint8_t> bytes) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text;
  text.reserve(bytes.size() * 2);
  for (std::uint8_t byte : bytes) {
    text += digits[byte >> 4];
    text += digits[byte & 15];
  }
  return text;
}

namespace {

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

constexpr std::string_view base64_alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

constexpr std::array<std::int8_t, 256> base64_values = [] {
  std::array<std::int8_t, 256> values{};
  values.fill(-1);
  for (size_t i = 0; i < base64_alphabet.size(); ++i) {
    values[static_cast<std::uint8_t>(base64_alphabet[i])] = static_cast<std::int8_t>(i);
  }
  return values;
}();

}  // namespace

Result<std::vector<std::uint8_t>> from_hex(std::string_view text) {
  if (text.size() % 2 != 0) return fail(ErrorCode::invalid_argument, "hexadecimal text has an odd length");
  std::vector<std::uint8_t> bytes;
  bytes.reserve(text.size() / 2);
  for (size_t i = 0; i < text.size(); i += 2) {
    int high = hex_digit(text[i]);
    int low = hex_digit(text[i + 1]);
    if (high < 0 || low < 0) return fail(ErrorCode::invalid_argument, "not hexadecimal at offset {}", i);
    bytes.push_back(static_cast<std::uint8_t>(high << 4 | low));
  }
  return bytes;
}

std::string to_base64(std::span<const std::uint8_t> bytes) {
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  size_t i = 0;
  for (; i + 2 < bytes.size(); i += 3) {
    std::uint32_t group = bytes[i] << 16 | bytes[i + 1] << 8 | bytes[i + 2];
    for (int shift : {18, 12, 6, 0})
      text += base64_alphabet[group >> shift & 63];
  }
  size_t rest = bytes.size() - i;
  if (rest > 0) {
    std::uint32_t group = bytes[i] << 16 | (rest == 2 ? bytes[i + 1] << 8 : 0);
    text += base64_alphabet[group >> 18 & 63];
    text += base64_alphabet[group >> 12 & 63];
    text += rest == 2 ? base64_alphabet[group >> 6 & 63] : '=';
    text += '=';
  }
  return text;
}

Result<std::vector<std::uint8_t>> from_base64(std::string_view text) {
  if (text.size() % 4 != 0)
    return fail(ErrorCode::invalid_argument, "base64 text has a length that is no multiple of 4");
  size_t padding = 0;
  while (padding < 2 && padding < text.size() && text[text.size() - 1 - padding] == '=')
    ++padding;
  std::vector<std::uint8_t> bytes;
  bytes.reserve(text.size() / 4 * 3);
  for (size_t i = 0; i < text.size(); i += 4) {
    bool last = i + 4 == text.size();
    size_t count = last ? 4 - padding : 4;
    std::uint32_t group = 0;
    for (size_t k = 0; k < 4; ++k) {
      std::int8_t value = k < count ? base64_values[static_cast<std::uint8_t>(text[i + k])] : std::int8_t{0};
      if (value < 0) return fail(ErrorCode::invalid_argument, "not base64 at offset {}", i + k);
      group = group << 6 | static_cast<std::uint32_t>(value);
    }
    if ((count == 3 && (group & 0xff) != 0) || (count == 2 && (group & 0xffff) != 0)) {
      return fail(ErrorCode::invalid_argument, "base64 text has stray bits in its last group");
    }
    for (size_t k = 0; k + 1 < count; ++k)
      bytes.push_back(static_cast<std::uint8_t>(group >> (16 - 8 * k)));
  }
  return bytes;
}

namespace {

bool is_hidden_code_point(char32_t c) {
  return c < 0x20 || (c >= 0x7f && c < 0xa0) || (c >= 0x200b && c <= 0x200f) || (c >= 0x2028 && c <= 0x202e) ||
         (c >= 0x2060 && c <= 0x2069) || c == 0xfeff || (c >= 0xe0000 && c <= 0xe007f);
}

}  // namespace

std::string escape_for_terminal(std::string_view text, bool keep_newlines) {
  std::string safe;
  safe.reserve(text.size());
  while (!text.empty()) {
    utf8::Decoded decoded = utf8::decode_first(text);
    std::string_view unit = text.substr(0, decoded.size_bytes);
    if (!decoded.valid) {
      safe += fmt::format("\\x{:02x}", static_cast<std::uint8_t>(text[0]));
    } else if (!is_hidden_code_point(decoded.code_point) || (keep_newlines && (unit == "\n" || unit == "\t"))) {
      safe += unit;
    } else {
      switch (decoded.code_point) {
        case '\n':
          safe += "\\n";
          break;
        case '\r':
          safe += "\\r";
          break;
        case '\t':
          safe += "\\t";
          break;
        default:
          safe += decoded.code_point < 0x80 ? fmt::format("\\x{:02x}", static_cast<unsigned>(decoded.code_point))
                                            : fmt::format("\\u{{{:04x}}}", static_cast<unsigned>(decoded.code_point));
      }
    }
    text.remove_prefix(decoded.size_bytes);
  }
  return safe;
}

std::string quote(std::string_view text) {
  std::string quoted = "\"";
  size_t begin = 0;
  for (size_t i = 0; i <= text.size(); ++i) {
    if (i < text.size() && text[i] != '"' && text[i] != '\\') continue;
    quoted += escape_for_terminal(text.substr(begin, i - begin));
    if (i < text.size()) {
      quoted += '\\';
      quoted += text[i];
    }
    begin = i + 1;
  }
  return quoted += '"';
}

std::optional<std::string_view> nearest_name(std::string_view word, std::span<const std::string_view> candidates) {
  std::optional<std::string_view> best;
  size_t best_distance = std::max<size_t>(2, word.size() / 3) + 1;
  for (std::string_view candidate : candidates) {
    if (candidate.size() > 256 || word.size() > 256) continue;
    std::vector<size_t> row(candidate.size() + 1);
    for (size_t k = 0; k < row.size(); ++k)
      row[k] = k;
    for (size_t i = 1; i <= word.size(); ++i) {
      size_t diagonal = row[0];
      row[0] = i;
      for (size_t k = 1; k <= candidate.size(); ++k) {
        size_t substituted = diagonal + (word[i - 1] == candidate[k - 1] ? 0 : 1);
        diagonal = row[k];
        row[k] = std::min({row[k] + 1, row[k - 1] + 1, substituted});
      }
    }
    if (row.back() < best_distance) {
      best_distance = row.back();
      best = candidate;
    }
  }
  return best;
}

bool constant_time_equal(std::string_view left, std::string_view right) {
  volatile std::uint8_t difference = left.size() == right.size() ? 0 : 1;
  size_t count = std::min(left.size(), right.size());
  for (size_t i = 0; i < count; ++i) {
    difference = difference | static_cast<std::uint8_t>(left[i] ^ right[i]);
  }
  return difference == 0;
}

std::span<const std::uint8_t> as_bytes(std::string_view text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

std::string_view as_text(std::span<const std::uint8_t> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

Result<void> check_agent_id(std::string_view text) {
  if (text.empty()) return fail(ErrorCode::invalid_argument, "an agent id must not be empty");
  if (text.size() > 64) {
    return fail(ErrorCode::invalid_argument, "agent id of {} characters is longer than 64", text.size());
  }
  auto is_alphanumeric = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
  };
  if (!is_alphanumeric(text[0])) {
    return fail(ErrorCode::invalid_argument, "agent id {} must start with a letter or a digit", quote(text));
  }
  for (std::string_view rest = text; !rest.empty();) {
    utf8::Decoded decoded = utf8::decode_first(rest);
    bool allowed =
        decoded.valid && decoded.size_bytes == 1 && (is_alphanumeric(rest[0]) || rest[0] == '-' || rest[0] == '_');
    if (!allowed) {
      return decoded.valid
                 ? fail(ErrorCode::invalid_argument, "agent id {} contains U+{:04X}; allowed are A-Z a-z 0-9 _ -",
                        quote(text), static_cast<unsigned>(decoded.code_point))
                 : fail(ErrorCode::invalid_argument, "agent id {} is not valid UTF-8", quote(text));
    }
    rest.remove_prefix(decoded.size_bytes);
  }
  if (text.find("__") != std::string_view::npos) {
    return fail(ErrorCode::invalid_argument, "agent id {} contains \"__\", which separates agent and tool",
                quote(text));
  }
  if (text == "gateway") return fail(ErrorCode::invalid_argument, "agent id \"gateway\" is reserved");
  return {};
}

}  // namespace hive
