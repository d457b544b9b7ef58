#include "config/duplicate_key.h"

#include <map>
#include <string>
#include <vector>

#include "protocol/json.h"

namespace hive::config {

namespace {

// The offset behind the string that starts at `start`, or npos.
std::size_t end_of_string(std::string_view text, std::size_t start) {
  for (std::size_t at = start + 1; at < text.size(); ++at) {
    if (text[at] == '\\') {
      ++at;
    } else if (text[at] == '"') {
      return at + 1;
    }
  }
  return std::string_view::npos;
}

}  // namespace

std::optional<DuplicateKey> find_duplicate_key(std::string_view text) {
  // One level for each open bracket; levels of lists stay empty.
  std::vector<std::map<std::string, std::size_t>> levels;
  for (std::size_t at = 0; at < text.size(); ++at) {
    char c = text[at];
    if (c == '{' || c == '[') {
      levels.emplace_back();
    } else if (c == '}' || c == ']') {
      if (levels.empty()) return std::nullopt;
      levels.pop_back();
    } else if (c == '"') {
      std::size_t end = end_of_string(text, at);
      if (end == std::string_view::npos) return std::nullopt;
      std::size_t next = text.find_first_not_of(" \t\r\n", end);
      bool is_key = next != std::string_view::npos && text[next] == ':' && !levels.empty();
      if (is_key) {
        std::optional<std::string> key = json::decode_string(text.substr(at, end - at));
        if (!key) return std::nullopt;
        auto [place, fresh] = levels.back().emplace(*std::move(key), at);
        if (!fresh) return DuplicateKey{.first = place->second, .second = at};
      }
      at = end - 1;
    }
  }
  return std::nullopt;
}

}  // namespace hive::config
