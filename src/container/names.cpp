#include "container/names.h"

#include <algorithm>

#include "base/strings.h"

namespace hive::container {

namespace {

constexpr size_t max_name_bytes = 11;

bool is_lower_or_digit(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

bool is_letter_or_digit(char c) {
  return is_lower_or_digit(c) || (c >= 'A' && c <= 'Z');
}

}  // namespace

Result<void> check_container_name(std::string_view name) {
  if (name.empty() || name.size() > max_name_bytes || !is_letter_or_digit(name.front()) ||
      !std::ranges::all_of(name, [](char c) { return is_letter_or_digit(c) || c == '_' || c == '-'; })) {
    return fail(ErrorCode::invalid_argument,
                "{} is not a container's name: 1 to {} characters of A-Z a-z 0-9 _ -, a letter or digit first",
                quote(name.substr(0, 64)), max_name_bytes);
  }
  return {};
}

Result<void> check_container_agent(std::string_view id) {
  if (id.empty() || id.size() > max_name_bytes - agent_prefix.size() || !is_lower_or_digit(id.front()) ||
      !is_lower_or_digit(id.back()) ||
      !std::ranges::all_of(id, [](char c) { return is_lower_or_digit(c) || c == '-'; })) {
    return fail(ErrorCode::invalid_argument,
                "{} cannot be an agent in a container: 1 to {} characters of a-z 0-9 -, a letter or digit first and "
                "last",
                quote(id.substr(0, 64)), max_name_bytes - agent_prefix.size());
  }
  return {};
}

Result<std::string> container_of(std::string_view id_or_name) {
  std::string_view id = id_or_name;
  if (id.starts_with(agent_prefix)) id.remove_prefix(agent_prefix.size());
  TRY(check_container_agent(id));
  return std::string(agent_prefix) + std::string(id);
}

std::string_view agent_of(std::string_view name) {
  return name.starts_with(agent_prefix) ? name.substr(agent_prefix.size()) : name;
}

std::string port_of(std::string_view name) {
  return "vb-" + std::string(name);
}

}  // namespace hive::container
