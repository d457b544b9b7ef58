#include "config/gateway_rules.h"

#include <algorithm>

#include "base/strings.h"
#include "config/names.h"

namespace hive::config {

namespace {

constexpr std::int64_t max_approvals = 10;
constexpr std::size_t max_group_members = 10'000;

// A list that is written is meant: an empty one would let every admin agree where somebody wanted to say who may.
void read_rule_groups(Reader& reader, const Value& value, ApprovalRule& rule) {
  for (const Value& element : reader.elements(value)) {
    std::optional<std::string> group = reader.string(element);
    if (!group) continue;
    if (Result<void> checked = check_identity(*group); !checked) {
      reader.problem(element, checked.error().message);
    } else if (std::ranges::find(rule.groups, *group) == rule.groups.end()) {
      rule.groups.push_back(*std::move(group));
    }
  }
  if (value.raw.starts_with("[") && !says_something(value.raw)) {
    reader.problem(value, "names no group; leave the key out to let every admin agree");
  }
}

constexpr Key<ApprovalRule> rule_keys[] = {
    {{.name = "count", .type = "whole number, 1 to 10", .default_value = "1"},
     store_integer<&ApprovalRule::count, 1, max_approvals>},
    {{.name = "groups", .type = "list of strings", .default_value = "any admin"}, read_rule_groups},
};

// "run_command:NAME" is one command of run_command, by its name in the agents' allowed_commands.
Result<void> check_tiered_name(std::string_view name) {
  constexpr std::string_view command_prefix = "run_command:";
  if (name.starts_with(command_prefix)) return check_command_name(name.substr(command_prefix.size()));
  return check_tool_name(name);
}

}  // namespace

void read_risk_tiers(Reader& reader, const Value& value, GatewayDraft& draft) {
  for (const auto& [name, element] : reader.members(value)) {
    if (Result<void> checked = check_tiered_name(name); !checked) {
      reader.problem(element, checked.error().message);
      continue;
    }
    if (auto tier = read_tier(reader, element)) draft.risk_tiers[name] = *std::move(tier);
  }
}

void read_approval_tiers(Reader& reader, const Value& value, GatewayDraft& draft) {
  for (const Value& element : reader.elements(value)) {
    std::optional<std::string> tier = read_tier(reader, element);
    if (tier && std::ranges::find(draft.require_approval_tiers, *tier) == draft.require_approval_tiers.end()) {
      draft.require_approval_tiers.push_back(*std::move(tier));
    }
  }
}

void read_approvals_required(Reader& reader, const Value& value, GatewayDraft& draft) {
  for (const auto& [name, element] : reader.members(value)) {
    std::optional<std::string> tier = read_tier_name(reader, element, name);
    ApprovalRule rule;
    if (element.raw.starts_with('{')) {
      read_members<ApprovalRule>(reader, element, rule_keys, rule);
    } else if (auto count = reader.integer(element, 1, max_approvals)) {
      rule.count = static_cast<unsigned>(*count);
    }
    if (!tier) continue;
    // "mutate" and "write" are one tier.
    if (!draft.approvals_required.try_emplace(*tier, std::move(rule)).second) {
      reader.problem(element, fmt::format("the tier {} stands here already, under another name", *tier));
    }
  }
}

void read_approval_groups(Reader& reader, const Value& value, GatewayDraft& draft) {
  for (const auto& [group, element] : reader.members(value)) {
    if (Result<void> checked = check_identity(group); !checked) {
      reader.problem(element, checked.error().message);
      continue;
    }
    std::vector<Value> members = reader.elements(element);
    if (members.size() > max_group_members) {
      reader.problem(element,
                     fmt::format("has {} members; at most {} are accepted", members.size(), max_group_members));
      continue;
    }
    std::vector<std::string>& identities = draft.approval_groups[group];
    for (const Value& member : members) {
      std::optional<std::string> identity = reader.string(member);
      if (!identity) continue;
      if (Result<void> checked = check_identity(*identity); !checked) {
        reader.problem(member, checked.error().message);
        continue;
      }
      identities.push_back(*std::move(identity));
    }
  }
}

void read_agent_tags(Reader& reader, const Value& value, GatewayDraft& draft) {
  for (const auto& [agent, element] : reader.members(value)) {
    if (Result<void> checked = check_agent_id(agent); !checked) {
      reader.problem(element, checked.error().message);
      continue;
    }
    draft.agent_tags[agent] = reader.string_list(element);
  }
}

void check_rules(Reader& reader, const GatewayDraft& draft) {
  // The identity provider may know groups that the file does not.
  if (!draft.oidc_issuer.empty()) return;
  for (const auto& [tier, rule] : draft.approvals_required) {
    for (const std::string& group : rule.groups) {
      if (draft.approval_groups.contains(group)) continue;
      reader.problem_with_file(fmt::format(
          "approvals_required.{} names the group {}, which has no members: add it to approval_groups, as in "
          "\"approval_groups\": {{{}: [\"alice\"]}}",
          tier, quote(group), quote(group)));
    }
  }
}

void append_rule_keys(std::vector<PlacedKey>& keys) {
  for (const Key<ApprovalRule>& row : rule_keys) {
    keys.push_back({fmt::format("approvals_required{{}}.{}", row.info.name), row.info});
  }
}

}  // namespace hive::config
