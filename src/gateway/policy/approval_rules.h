#pragma once

#include <array>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "config/gateway_config.h"
#include "gateway/policy/policy.h"
#include "gateway/policy/rule_text.h"
#include "gateway/policy/scope.h"

namespace hive::policy {

/// Which tiers wait for other people, for how many, and who these may be; scopes apart.
class ApprovalRules {
 public:
  ApprovalRules(const config::GatewayConfig& config, const RuleText& rules);

  [[nodiscard]] bool asks(protocol::Tier tier) const { return of(tier).asks; }
  [[nodiscard]] unsigned needed(protocol::Tier tier) const { return of(tier).count; }
  /// The line that says which tiers wait.
  [[nodiscard]] const std::string& asking_rule() const { return asking_rule_; }
  /// "another admin", "2 other admins of one of the groups ops, security".
  [[nodiscard]] std::string people(protocol::Tier tier) const;

  [[nodiscard]] Decision check_role(const Principal& approver) const;
  [[nodiscard]] static Decision check_not_own(const Principal& approver, const ApprovalSubject& subject);
  [[nodiscard]] Decision check_group(const Principal& approver, protocol::Tier tier) const;

 private:
  struct Tier {
    bool asks = false;
    unsigned count = 1;
    std::vector<std::string> groups;
    std::string rule;
  };
  [[nodiscard]] const Tier& of(protocol::Tier tier) const { return tiers_[static_cast<std::size_t>(tier)]; }
  [[nodiscard]] bool is_member(const Principal& approver, const std::string& group) const;

  std::array<Tier, 3> tiers_;
  std::unordered_map<std::string, std::unordered_set<std::string>> members_;  // by group
  std::string asking_rule_;
};

}  // namespace hive::policy
