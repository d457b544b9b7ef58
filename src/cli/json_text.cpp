#include "cli/json_text.h"

#include <fmt/format.h>

#include "base/strings.h"
#include "base/utf8.h"

namespace hive::cli {

namespace {

std::string unicode_escape(char32_t code_point) {
  if (code_point < 0x10000) return fmt::format("\\u{:04x}", static_cast<unsigned>(code_point));
  unsigned offset = static_cast<unsigned>(code_point) - 0x10000;
  return fmt::format("\\u{:04x}\\u{:04x}", 0xd800 + (offset >> 10), 0xdc00 + (offset & 0x3ff));
}

/// Copies the string that begins at `json[at]` and returns the offset behind it.
size_t copy_string(std::string_view json, size_t at, std::string& out) {
  out += json[at++];
  while (at < json.size()) {
    utf8::Decoded decoded = utf8::decode_first(json.substr(at));
    std::string_view unit = json.substr(at, decoded.size_bytes);
    at += decoded.size_bytes;
    if (unit == "\\" && at < json.size()) {
      out += unit;
      out += json[at++];
    } else if (!decoded.valid) {
      out += "\\ufffd";
    } else if (decoded.code_point >= 0x7f && escape_for_terminal(unit) != unit) {
      out += unicode_escape(decoded.code_point);
    } else {
      out += unit;
      if (unit == "\"") break;
    }
  }
  return at;
}

bool is_space(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

void new_line(std::string& out, size_t depth) {
  out += '\n';
  out.append(depth * 2, ' ');
}

}  // namespace

std::string json_for_terminal(std::string_view json) {
  std::string out;
  out.reserve(json.size() + 1);
  size_t at = 0;
  while (at < json.size()) {
    if (json[at] == '"') {
      at = copy_string(json, at, out);
    } else {
      // A carriage return is white space in JSON, but moves a terminal's cursor.
      if (json[at] != '\r') out += json[at];
      ++at;
    }
  }
  return out;
}

std::string json_line(std::string_view json) {
  std::string out;
  out.reserve(json.size() + 1);
  size_t at = 0;
  while (at < json.size()) {
    if (json[at] == '"') {
      at = copy_string(json, at, out);
    } else {
      if (!is_space(json[at])) out += json[at];
      ++at;
    }
  }
  return out += '\n';
}

std::string pretty_json(std::string_view json) {
  std::string out;
  out.reserve(json.size() * 2);
  size_t depth = 0;
  size_t at = 0;
  auto skip_space = [&] {
    while (at < json.size() && is_space(json[at]))
      ++at;
  };
  for (skip_space(); at < json.size(); skip_space()) {
    char c = json[at];
    switch (c) {
      case '"':
        at = copy_string(json, at, out);
        continue;
      case '{':
      case '[': {
        out += c;
        ++at;
        skip_space();
        if (at < json.size() && (json[at] == '}' || json[at] == ']')) {
          out += json[at++];
        } else {
          new_line(out, ++depth);
        }
        continue;
      }
      case '}':
      case ']':
        if (depth > 0) --depth;
        new_line(out, depth);
        out += c;
        break;
      case ',':
        out += c;
        new_line(out, depth);
        break;
      case ':':
        out += ": ";
        break;
      default:
        out += c;
        break;
    }
    ++at;
  }
  out += '\n';
  return out;
}

}  // namespace hive::cli
