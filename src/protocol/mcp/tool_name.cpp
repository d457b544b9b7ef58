#include <algorithm>
#include <span>

#include "base/strings.h"
#include "crypto/sha256.h"
#include "protocol/mcp/translation.h"

namespace hive::mcp {

namespace {

constexpr std::size_t max_name = 64;
constexpr std::size_t digest_bytes = 5;
constexpr std::string_view separator = "__";

bool is_allowed(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.' ||
         c == '-' || c == '/';
}

}  // namespace

std::string public_tool_name(std::string_view prefix, std::string_view tool) {
  std::string name(prefix);
  if (!prefix.empty()) name += separator;
  name += tool;
  bool is_clear = prefix.empty() || name.find(separator) == prefix.size();
  if (is_clear && !tool.empty() && name.size() <= max_name && std::ranges::all_of(name, is_allowed)) return name;

  // The zero byte tells apart what the joined name does not.
  std::string parts = std::string(prefix) + '\0' + std::string(tool);
  const crypto::Digest whole = crypto::sha256(parts);
  std::string digest = to_hex(std::span(whole).first(digest_bytes));
  name.resize(std::min(name.size(), max_name - digest.size() - 1));
  std::ranges::replace_if(name, [](char c) { return !is_allowed(c); }, '_');
  return name + '-' + digest;
}

}  // namespace hive::mcp
