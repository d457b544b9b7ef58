#include "priv/names.h"

#include <algorithm>

#include "base/strings.h"

namespace hive::priv {

namespace {

constexpr std::string_view agent_prefix = "h-";
constexpr size_t max_agent_name = 9;
constexpr size_t max_container_name = 64;
constexpr size_t max_interface_name = 15;  // IFNAMSIZ of Linux without its final NUL
constexpr size_t max_path = 255;

bool is_lower(char c) {
  return c >= 'a' && c <= 'z';
}
bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_letter(char c) {
  return is_lower(c) || (c >= 'A' && c <= 'Z');
}

}  // namespace

Result<void> check_agent_container(std::string_view name) {
  if (is_agent_container(name)) return {};
  return fail(ErrorCode::invalid_argument,
              "container: {} is not the name of an agent's container; \"h-\" and 1 to 9 of a-z 0-9 - are",
              quote(name.substr(0, max_container_name)));
}

bool is_agent_container(std::string_view name) {
  if (!name.starts_with(agent_prefix)) return false;
  std::string_view agent = agent_of(name);
  if (agent.empty() || agent.size() > max_agent_name || agent.front() == '-' || agent.back() == '-') return false;
  return std::ranges::all_of(agent, [](char c) { return is_lower(c) || is_digit(c) || c == '-'; });
}

Result<void> check_any_container(std::string_view name) {
  bool good = !name.empty() && name.size() <= max_container_name && name.front() != '-' &&
              std::ranges::all_of(name, [](char c) { return is_letter(c) || is_digit(c) || c == '-' || c == '_'; });
  if (good) return {};
  return fail(ErrorCode::invalid_argument, "{} is not the name of a container; 1 to {} of A-Z a-z 0-9 _ - are",
              quote(name.substr(0, max_container_name)), max_container_name);
}

std::string_view agent_of(std::string_view container) {
  return container.substr(agent_prefix.size());
}

Result<void> check_interface(std::string_view name) {
  bool good =
      !name.empty() && name.size() <= max_interface_name && name != "." && name != ".." &&
      std::ranges::all_of(name, [](char c) { return is_letter(c) || is_digit(c) || c == '-' || c == '_' || c == '.'; });
  if (good) return {};
  return fail(ErrorCode::invalid_argument,
              "{} is not the name of a network interface; 1 to 15 of A-Z a-z 0-9 _ . - are",
              quote(name.substr(0, max_container_name)));
}

Result<void> check_plain_path(std::string_view path) {
  auto refuse = [&](std::string_view why) {
    return fail(ErrorCode::invalid_argument, "{}: {}", quote(path.substr(0, max_path)), why);
  };
  if (path.size() > max_path) return refuse("longer than 255 bytes");
  if (!path.starts_with('/')) return refuse("not an absolute path");
  for (char c : path) {
    bool plain = is_letter(c) || is_digit(c) || c == '.' || c == '_' || c == '/' || c == '-';
    if (!plain) return refuse("only A-Z a-z 0-9 . _ / - may stand in a path");
  }
  for (std::string_view part : split(path.substr(1), '/')) {
    if (part.empty()) return refuse(path == "/" ? "the root folder" : "an empty part; write it without \"//\"");
    if (part == "." || part == "..") return refuse("\".\" and \"..\" are not allowed as parts");
  }
  return {};
}

bool is_at_or_below(std::string_view path, std::string_view folder) {
  if (!path.starts_with(folder)) return false;
  return path.size() == folder.size() || folder.ends_with('/') || path[folder.size()] == '/';
}

}  // namespace hive::priv
