#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "gateway/policy/principal.h"

namespace hive::policy {

/// Whether the whole of `name` matches `pattern`, in which "*" stands for any characters or none, and everything else
/// for itself. Takes time proportional to the sum of the lengths.
bool glob_matches(std::string_view pattern, std::string_view name);

/// The first of the patterns that matches, or nullptr.
const std::string* matching_glob(std::span<const std::string> patterns, std::string_view name);

/// Hashes strings and views alike, so that a lookup builds no string.
struct TextHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
};

/// The tags of each agent.
using AgentTags = std::unordered_map<std::string, std::vector<std::string>, TextHash, std::equal_to<>>;

/// What lets a scope reach an agent. Views into the scope; both empty: nothing does.
struct Reach {
  std::string_view agent;  ///< the entry of `agents`
  std::string_view tag;    ///< the entry of `tags`
  explicit operator bool() const { return !agent.empty() || !tag.empty(); }
};
Reach reach_of(const Scope& scope, const AgentTags& tags, std::string_view agent);

/// Whether the scope holds every agent there is or will be.
bool reaches_all_agents(const Scope& scope);

/// Whether some program takes `key` for the member `member`, which is ASCII in lower case: Go's encoding/json matches
/// the names of members whatever their case, by Unicode's simple folding, and lets the last of them win.
bool may_be_read_as(std::string_view key, std::string_view member);

/// The agents that the arguments of a call name at their top level: agent and agent_id, agents and agent_ids, each a
/// string or a list of strings, and all_agents.
struct NamedAgents {
  std::vector<std::string> ids;
  bool all = false;
  /// One of the members is of another type, or names too many: whom it means cannot be told.
  bool unclear = false;
};
NamedAgents agents_named_in(std::string_view arguments);

}  // namespace hive::policy
