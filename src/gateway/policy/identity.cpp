#include "gateway/policy/identity.h"

#include <algorithm>

#include "base/utf8.h"

namespace hive::policy {

namespace {

constexpr std::size_t max_identity_bytes = 256;

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

bool is_control(char32_t c) {
  return c < 0x20 || (c >= 0x7f && c < 0xa0);
}

// What breaks a line or turns the direction of text (Unicode 15, section 23.2): it makes one name look like another.
bool is_misleading(char32_t c) {
  return c == 0x061c || (c >= 0x200b && c <= 0x200f) || (c >= 0x2028 && c <= 0x202e) || (c >= 0x2060 && c <= 0x206f) ||
         c == 0xfeff;
}

}  // namespace

bool equal_ignoring_case(std::string_view left, std::string_view right) {
  return std::ranges::equal(left, right, {}, lower, lower);
}

Result<void> check_identity(std::string_view identity) {
  if (identity.empty() || identity.size() > max_identity_bytes) {
    return fail(ErrorCode::invalid_argument, "an identity has 1 to {} bytes", max_identity_bytes);
  }
  for (std::string_view rest = identity; !rest.empty();) {
    utf8::Decoded next = utf8::decode_first(rest);
    if (!next.valid) return fail(ErrorCode::invalid_argument, "an identity is UTF-8");
    if (is_control(next.code_point) || is_misleading(next.code_point)) {
      return fail(ErrorCode::invalid_argument, "an identity holds no control, invisible or direction characters");
    }
    rest.remove_prefix(next.size_bytes);
  }
  if (identity.front() == ' ' || identity.back() == ' ') {
    return fail(ErrorCode::invalid_argument, "an identity neither begins nor ends with a blank");
  }
  constexpr std::string_view token_prefix = "token:";
  if (equal_ignoring_case(identity.substr(0, token_prefix.size()), token_prefix)) {
    return fail(ErrorCode::invalid_argument, "names that begin with \"token:\" belong to tokens");
  }
  for (std::string_view own : {"gateway", "system", "stdio"}) {
    if (!equal_ignoring_case(identity, own)) continue;
    return fail(ErrorCode::invalid_argument, "\"gateway\", \"system\" and \"stdio\" are names of the gateway itself");
  }
  return {};
}

}  // namespace hive::policy
