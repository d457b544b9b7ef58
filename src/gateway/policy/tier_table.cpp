#include "gateway/policy/tier_table.h"

#include <algorithm>

#include "gateway/policy/scope.h"
#include "protocol/json.h"
#include "protocol/tools.h"

namespace hive::policy {

namespace {

constexpr std::string_view run_command = "run_command";
constexpr std::string_view command_prefix = "run_command:";

protocol::Tier builtin_tier(std::string_view tool) {
  const protocol::ToolDescription* builtin = protocol::find_builtin_tool(tool);
  return builtin == nullptr ? protocol::Tier::write : builtin->tier;
}

}  // namespace

TierTable::TierTable(const config::GatewayConfig& config, const RuleText& rules) {
  for (const auto& [name, tier] : config.risk_tiers) {
    // The loader has checked the words; one that slips through must not open anything.
    TierAnswer answer{protocol::tier_from_string(tier).value_or(protocol::Tier::admin),
                      rules.of(fmt::format("risk_tiers.{}", name), tier)};
    if (name.starts_with(command_prefix)) {
      commands_.emplace(name.substr(command_prefix.size()), std::move(answer));
    } else {
      tools_.emplace(name, std::move(answer));
    }
  }
  builtin_run_command_ = {builtin_tier(run_command), fmt::format("built-in: {} is of tier {}", run_command,
                                                                 protocol::to_string(builtin_tier(run_command)))};
  auto tool = tools_.find(run_command);
  strictest_ = tool == tools_.end() ? &builtin_run_command_ : &tool->second;
  for (const auto& [name, answer] : commands_) {
    if (answer.tier > strictest_->tier) strictest_ = &answer;
  }
}

const TierAnswer* TierTable::of_command(std::string_view arguments) const {
  auto members = json::parse_object(arguments, {.max_bytes = arguments.size()});
  if (!members) return strictest_;
  // Another agent than ours may read "Name" as well, and then it is not told which of the two it runs.
  bool is_clear = std::ranges::none_of(
      *members, [](const json::Member& member) { return member.key != "name" && may_be_read_as(member.key, "name"); });
  if (!is_clear) return strictest_;
  auto raw = json::find(*members, "name");
  if (!raw) return nullptr;  // no command, and the agent will refuse it
  std::optional<std::string> name = json::decode_string(*raw);
  if (!name) return strictest_;
  auto found = commands_.find(*name);
  return found == commands_.end() ? nullptr : &found->second;
}

const TierAnswer* TierTable::configured(std::string_view tool, std::string_view arguments) const {
  if (!commands_.empty() && tool == run_command) {
    if (const TierAnswer* answer = of_command(arguments)) return answer;
  }
  if (tools_.empty()) return nullptr;
  auto found = tools_.find(tool);
  return found == tools_.end() ? nullptr : &found->second;
}

protocol::Tier TierTable::tier_of(std::string_view tool, std::string_view arguments) const {
  const TierAnswer* answer = configured(tool, arguments);
  return answer == nullptr ? builtin_tier(tool) : answer->tier;
}

protocol::Tier TierTable::tier_of_upstream(std::string_view tool) const {
  auto found = tools_.find(tool);
  return found == tools_.end() ? protocol::Tier::write : found->second.tier;
}

TierAnswer TierTable::explain(std::string_view tool, std::string_view arguments) const {
  if (const TierAnswer* answer = configured(tool, arguments)) return *answer;
  protocol::Tier tier = builtin_tier(tool);
  if (protocol::find_builtin_tool(tool) == nullptr) {
    return {tier, "built-in: a tool that nobody classified is of tier write"};
  }
  return {tier, fmt::format("built-in: {} is of tier {}", tool, protocol::to_string(tier))};
}

}  // namespace hive::policy
