#include "gateway/policy/scope.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "gateway/policy/identity.h"
#include "protocol/json.h"

namespace hive::policy {

namespace {

constexpr std::size_t max_named_agents = 1024;
constexpr std::array<std::string_view, 4> naming_members = {"agent", "agent_id", "agents", "agent_ids"};

// std::string_view::find takes time proportional to the product of the lengths at worst; memmem of the C library does
// not.
std::size_t find_text(std::string_view text, std::string_view piece) {
  if (piece.empty()) return 0;
  if (text.empty()) return std::string_view::npos;
  const void* at = ::memmem(text.data(), text.size(), piece.data(), piece.size());
  return at == nullptr ? std::string_view::npos : static_cast<std::size_t>(static_cast<const char*>(at) - text.data());
}

void add_name(NamedAgents& named, std::string_view raw) {
  std::optional<std::string> id = json::decode_string(raw);
  if (!id || named.ids.size() >= max_named_agents) {
    named.unclear = true;
  } else {
    named.ids.push_back(*std::move(id));
  }
}

void add_names(NamedAgents& named, std::string_view raw) {
  if (json::is_null(raw)) return;
  if (!json::is_array(raw)) return add_name(named, raw);
  auto elements = json::parse_array(raw, {.max_bytes = raw.size()});
  if (!elements || elements->size() > max_named_agents) {
    named.unclear = true;
    return;
  }
  for (std::string_view element : *elements)
    add_name(named, element);
}

}  // namespace

bool glob_matches(std::string_view pattern, std::string_view name) {
  std::size_t star = pattern.find('*');
  if (star == std::string_view::npos) return pattern == name;
  if (!name.starts_with(pattern.substr(0, star))) return false;
  name.remove_prefix(star);
  pattern.remove_prefix(star + 1);
  // Taking each piece between two stars at its first place leaves the most for the pieces that follow.
  while ((star = pattern.find('*')) != std::string_view::npos) {
    std::size_t at = find_text(name, pattern.substr(0, star));
    if (at == std::string_view::npos) return false;
    name.remove_prefix(at + star);
    pattern.remove_prefix(star + 1);
  }
  return name.ends_with(pattern);
}

const std::string* matching_glob(std::span<const std::string> patterns, std::string_view name) {
  auto found = std::ranges::find_if(patterns, [&](const std::string& pattern) { return glob_matches(pattern, name); });
  return found == patterns.end() ? nullptr : &*found;
}

Reach reach_of(const Scope& scope, const AgentTags& tags, std::string_view agent) {
  if (agent.empty()) return {};
  if (const std::string* pattern = matching_glob(scope.agents, agent)) return {*pattern, {}};
  if (scope.tags.empty()) return {};
  auto found = tags.find(agent);
  if (found == tags.end()) return {};
  for (const std::string& tag : found->second) {
    if (const std::string* pattern = matching_glob(scope.tags, tag)) return {{}, *pattern};
  }
  return {};
}

bool reaches_all_agents(const Scope& scope) {
  return std::ranges::any_of(scope.agents, [](const std::string& pattern) {
    return !pattern.empty() && pattern.find_first_not_of('*') == std::string::npos;
  });
}

bool may_be_read_as(std::string_view key, std::string_view member) {
  constexpr std::string_view long_s = "\u017f";
  std::string folded;
  for (std::size_t at = key.find(long_s); at != std::string_view::npos; at = key.find(long_s)) {
    folded.append(key.substr(0, at)).push_back('s');
    key.remove_prefix(at + long_s.size());
  }
  if (folded.empty()) return equal_ignoring_case(key, member);
  return equal_ignoring_case(folded.append(key), member);
}

NamedAgents agents_named_in(std::string_view arguments) {
  NamedAgents named;
  // Most calls name nobody. A name can hide behind an escape, such as "\u0061gent", and nowhere else.
  constexpr std::string_view in_all_names = "agent";
  auto same_letter = [](char left, char right) { return (left | 0x20) == right; };
  bool may_name = !std::ranges::search(arguments, in_all_names, same_letter).empty();
  if (!may_name && !arguments.contains('\\')) return named;
  auto members = json::parse_object(arguments, {.max_bytes = arguments.size()});
  if (!members) {
    named.unclear = true;
    return named;
  }
  for (const json::Member& member : *members) {
    auto names = [&](std::string_view name) { return may_be_read_as(member.key, name); };
    if (std::ranges::any_of(naming_members, names)) {
      add_names(named, member.value);
    } else if (names("all_agents") && !json::is_null(member.value)) {
      // Whatever is not clearly false may be taken for true by somebody.
      if (json::decode_boolean(member.value) != false) named.all = true;
    }
  }
  return named;
}

}  // namespace hive::policy
