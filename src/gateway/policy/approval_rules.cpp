#include "gateway/policy/approval_rules.h"

#include <algorithm>

#include "gateway/policy/identity.h"

namespace hive::policy {

ApprovalRules::ApprovalRules(const config::GatewayConfig& config, const RuleText& rules)
    : asking_rule_(rules.of("require_approval_tiers", list_text(config.require_approval_tiers))) {
  for (const std::string& name : config.require_approval_tiers) {
    auto tier = protocol::tier_from_string(name);
    // The loader has checked the words; one that slips through must not open anything.
    for (std::size_t i = 0; i < tiers_.size(); ++i) {
      if (!tier || static_cast<std::size_t>(*tier) == i) tiers_[i].asks = true;
    }
  }
  for (const auto& [name, rule] : config.approvals_required) {
    auto tier = protocol::tier_from_string(name);
    if (!tier) continue;
    Tier& entry = tiers_[static_cast<std::size_t>(*tier)];
    entry.count = std::max(1U, rule.count);
    entry.groups = rule.groups;
    std::string value = std::to_string(entry.count);
    if (!entry.groups.empty()) value += " of " + list_text(entry.groups);
    entry.rule = rules.of("approvals_required." + name, value);
  }
  for (const auto& [group, identities] : config.approval_groups)
    members_[group].insert(identities.begin(), identities.end());
}

std::string ApprovalRules::people(protocol::Tier tier) const {
  const Tier& entry = of(tier);
  std::string text = entry.count == 1 ? "another admin" : fmt::format("{} other admins", entry.count);
  if (!entry.groups.empty()) {
    text +=
        fmt::format(" of {} {}", entry.groups.size() == 1 ? "the group" : "one of the groups", list_text(entry.groups));
  }
  return text;
}

Decision ApprovalRules::check_role(const Principal& approver) const {
  if (approver.role == Role::admin) return Decision::allow();
  return {Verdict::deny, "role",
          fmt::format("only an admin may decide about the calls of others; this credential has the role {}",
                      to_string(approver.role)),
          role_rule(approver)};
}

Decision ApprovalRules::check_not_own(const Principal& approver, const ApprovalSubject& subject) {
  for (std::string_view requester : {std::string_view(subject.identity), std::string_view(subject.principal),
                                     std::string_view(subject.on_behalf_of)}) {
    if (requester.empty()) continue;
    if (equal_ignoring_case(requester, approver.identity()) || equal_ignoring_case(requester, approver.name)) {
      return {Verdict::deny, "own_request",
              "nobody approves their own request, whichever credential they show; ask another admin",
              "built-in: a request is approved by somebody else than its requester"};
    }
  }
  return Decision::allow();
}

bool ApprovalRules::is_member(const Principal& approver, const std::string& group) const {
  if (approver.grant != nullptr && std::ranges::count(approver.grant->groups, group) != 0) return true;
  auto members = members_.find(group);
  return members != members_.end() && members->second.contains(approver.identity());
}

Decision ApprovalRules::check_group(const Principal& approver, protocol::Tier tier) const {
  const Tier& entry = of(tier);
  bool admitted = entry.groups.empty() || std::ranges::any_of(entry.groups, [&](const std::string& group) {
                    return is_member(approver, group);
                  });
  if (admitted) return Decision::allow();
  return {Verdict::deny, "group",
          fmt::format("a call of tier {} needs the approval of {}, where you are no member", protocol::to_string(tier),
                      people(tier)),
          entry.rule};
}

}  // namespace hive::policy
