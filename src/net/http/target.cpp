#include "net/http/target.h"

#include <algorithm>

#include "base/strings.h"
#include "base/utf8.h"
#include "net/http/ascii.h"

namespace hive::net::http {

namespace {

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

bool is_visible_ascii(char c) {
  return c > 0x20 && c < 0x7f;
}

bool is_control(char c) {
  auto byte = static_cast<unsigned char>(c);
  return byte < 0x20 || byte == 0x7f;
}

bool starts_with_ignoring_case(std::string_view text, std::string_view prefix) {
  return equal_ignoring_case(text.substr(0, prefix.size()), prefix);
}

Result<std::string> decode_path(std::string_view raw) {
  for (std::size_t at = raw.find('%'); at != std::string_view::npos; at = raw.find('%', at + 1)) {
    if (starts_with_ignoring_case(raw.substr(at), "%2f")) {
      return fail(ErrorCode::invalid_argument, "the path contains an encoded slash");
    }
  }
  std::optional<std::string> path = percent_decode(raw);
  if (!path) {
    return fail(ErrorCode::invalid_argument, "the path has a broken percent escape, a NUL or invalid UTF-8");
  }
  if (std::ranges::any_of(*path, is_control)) {
    return fail(ErrorCode::invalid_argument, "the path contains a control character");
  }
  for (std::string_view segment : split(*path, '/')) {
    if (segment == "." || segment == "..") {
      return fail(ErrorCode::invalid_argument, "the path contains a \".\" or \"..\" segment");
    }
  }
  return *std::move(path);
}

}  // namespace

std::optional<std::string> percent_decode(std::string_view text) {
  std::string decoded;
  decoded.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      decoded += text[i];
      continue;
    }
    if (i + 2 >= text.size()) return std::nullopt;
    int high = hex_digit(text[i + 1]);
    int low = hex_digit(text[i + 2]);
    if (high < 0 || low < 0) return std::nullopt;
    decoded += static_cast<char>(high * 16 + low);
    i += 2;
  }
  if (decoded.find('\0') != std::string::npos || !utf8::is_valid(decoded)) return std::nullopt;
  return decoded;
}

std::optional<std::string> decode_query_component(std::string_view text) {
  std::string blanks(text);
  std::ranges::replace(blanks, '+', ' ');
  return percent_decode(blanks);
}

Result<Target> parse_target(std::string_view raw, std::string_view method) {
  if (raw.empty()) return fail(ErrorCode::invalid_argument, "the request target is empty");
  if (!std::ranges::all_of(raw, is_visible_ascii)) {
    return fail(ErrorCode::invalid_argument, "the request target contains a character that must be percent-encoded");
  }
  if (raw.find('#') != std::string_view::npos) {
    return fail(ErrorCode::invalid_argument, "the request target contains a fragment");
  }
  Target target;
  if (raw == "*") {
    if (method != "OPTIONS") return fail(ErrorCode::invalid_argument, "the request target \"*\" needs OPTIONS");
    target.path = "*";
    return target;
  }
  if (raw.front() != '/') {
    std::size_t scheme = starts_with_ignoring_case(raw, "http://")    ? 7
                         : starts_with_ignoring_case(raw, "https://") ? 8
                                                                      : 0;
    if (scheme == 0) return fail(ErrorCode::invalid_argument, "the request target is neither a path nor an http URL");
    raw.remove_prefix(scheme);
    std::size_t end = raw.find_first_of("/?");
    target.authority = raw.substr(0, end);
    if (target.authority.empty() || target.authority.find('@') != std::string::npos) {
      return fail(ErrorCode::invalid_argument, "the URL of the request target has no plain host");
    }
    raw = end == std::string_view::npos ? std::string_view("/") : raw.substr(end);
  }
  std::size_t question = raw.find('?');
  std::string_view path = raw.substr(0, question);
  if (question != std::string_view::npos) target.query = raw.substr(question + 1);
  target.path = TRY(decode_path(path.empty() ? std::string_view("/") : path));
  return target;
}

}  // namespace hive::net::http
