#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>

#include "config/gateway_config.h"
#include "gateway/policy/policy.h"
#include "gateway/policy/rule_text.h"
#include "gateway/policy/scope.h"

namespace hive::policy {

/// Which tier a call has: what risk_tiers says of the command, then of the tool, then the table of built-in tools,
/// otherwise write.
class TierTable {
 public:
  TierTable(const config::GatewayConfig& config, const RuleText& rules);
  TierTable(const TierTable&) = delete;
  TierTable& operator=(const TierTable&) = delete;

  [[nodiscard]] protocol::Tier tier_of_upstream(std::string_view tool) const;
  [[nodiscard]] protocol::Tier tier_of(std::string_view tool, std::string_view arguments) const;
  [[nodiscard]] TierAnswer explain(std::string_view tool, std::string_view arguments) const;

 private:
  using Rules = std::unordered_map<std::string, TierAnswer, TextHash, std::equal_to<>>;

  /// The rule of risk_tiers for this call, or nullptr.
  [[nodiscard]] const TierAnswer* configured(std::string_view tool, std::string_view arguments) const;
  [[nodiscard]] const TierAnswer* of_command(std::string_view arguments) const;

  Rules tools_;
  Rules commands_;                         // of run_command
  const TierAnswer* strictest_ = nullptr;  // of run_command and all its commands
  TierAnswer builtin_run_command_;
};

}  // namespace hive::policy
