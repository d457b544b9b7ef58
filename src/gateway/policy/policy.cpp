#include "gateway/policy/policy.h"

#include <array>
#include <map>
#include <optional>
#include <set>

#include "gateway/policy/rate_limiter.h"
#include "protocol/tools.h"

namespace hive::policy {

namespace {

constexpr std::size_t max_rate_keys_per_principal = 4096;
constexpr std::array<std::string_view, 6> credential_names = {"token", "scoped_token", "certificate",
                                                              "proxy", "oidc",         "internal"};
constexpr std::array<std::string_view, 3> role_names = {"read-only", "operator", "admin"};

class ConfiguredPolicy final : public Policy {
 public:
  ConfiguredPolicy(const config::GatewayConfig& config, const Clock& clock, const ConfiguredPolicy* previous)
      : rate_limit_(config.rate_limit_per_minute) {
    for (const auto& [tool, tier] : config.risk_tiers) {
      // The loader has checked the names; a name that slips through must not open anything.
      tiers_[tool] = protocol::tier_from_string(tier).value_or(protocol::Tier::admin);
    }
    for (const std::string& tier : config.require_approval_tiers) {
      if (auto known = protocol::tier_from_string(tier)) approval_tiers_.insert(*known);
    }
    if (config.rate_limit_per_minute > 0) {
      bool unchanged = previous != nullptr && previous->rate_limit_ == rate_limit_;
      rate_limiter_ = unchanged ? previous->rate_limiter_
                                : std::make_shared<RateLimiter>(static_cast<std::size_t>(rate_limit_),
                                                                max_rate_keys_per_principal, clock);
    }
  }

  [[nodiscard]] const std::string& version() const override { return version_; }

  [[nodiscard]] TierAnswer explain_tier(std::string_view tool, std::string_view arguments) const override {
    return {tier_of(tool, arguments), {}};
  }

  [[nodiscard]] std::vector<GateAnswer> explain(const Question& question) const override {
    return {{"role", check_role(question)}, {"scope", check_scope(question)}, {"approval", check_approval(question)}};
  }

  [[nodiscard]] bool reaches(const Principal&, std::string_view) const override { return true; }
  [[nodiscard]] bool reaches(const Principal&, std::string_view, std::string_view) const override { return true; }
  [[nodiscard]] unsigned approvals_needed(protocol::Tier) const override { return 1; }

  [[nodiscard]] Decision check_approver(const Principal& approver, const ApprovalSubject& subject) const override {
    if (approver.role != Role::admin) return {Verdict::deny, "role", "only an admin may approve a call", {}, {}};
    if (approver.identity() == subject.identity) {
      return {Verdict::deny, "own_request", "nobody approves their own request", {}, {}};
    }
    return Decision::allow();
  }

  [[nodiscard]] protocol::Tier tier_of(std::string_view tool, std::string_view /*arguments*/) const override {
    if (auto found = tiers_.find(tool); found != tiers_.end()) return found->second;
    const protocol::ToolDescription* builtin = protocol::find_builtin_tool(tool);
    return builtin == nullptr ? protocol::Tier::write : builtin->tier;
  }

  [[nodiscard]] Decision check_role(const Question& question) const override {
    if (question.principal.role != Role::read_only) return Decision::allow();
    return {Verdict::deny, "role", "the role read-only may look at the fleet but not call tools", {}, {}};
  }

  // Every credential that exists today reaches the whole fleet.
  [[nodiscard]] Decision check_scope(const Question&) const override { return Decision::allow(); }

  [[nodiscard]] Decision check_approval(const Question& question) const override {
    if (!approval_tiers_.contains(question.tier)) return Decision::allow();
    return {Verdict::ask,
            "approval_required",
            fmt::format("{} is of tier {}, for which another person must agree", question.tool,
                        protocol::to_string(question.tier)),
            {},
            {}};
  }

  [[nodiscard]] Decision check_rate(const Question& question) const override {
    if (rate_limiter_ == nullptr) return Decision::allow();
    // An agent id holds no "__", so the key is unambiguous.
    auto wait =
        rate_limiter_->try_acquire(question.principal.name, fmt::format("{}__{}", question.agent, question.tool));
    if (!wait) return Decision::allow();
    return {Verdict::deny,
            "rate_limited",
            fmt::format("more than rate_limit_per_minute calls of {} on {}; try again in {} s", question.tool,
                        question.agent, std::chrono::ceil<std::chrono::seconds>(*wait).count()),
            {},
            *wait};
  }

 private:
  std::map<std::string, protocol::Tier, std::less<>> tiers_;
  std::set<protocol::Tier> approval_tiers_;
  const int rate_limit_;
  const std::string version_ = "1";
  std::shared_ptr<RateLimiter> rate_limiter_;
};

}  // namespace

std::string_view to_string(Verdict verdict) {
  constexpr std::array<std::string_view, 4> names = {"allow", "deny", "ask", "unknown"};
  return names[static_cast<std::size_t>(verdict)];
}

std::string_view to_string(CredentialKind kind) {
  return credential_names[static_cast<std::size_t>(kind)];
}

std::optional<CredentialKind> credential_kind_from_string(std::string_view name) {
  for (std::size_t i = 0; i < credential_names.size(); ++i) {
    if (credential_names[i] == name) return static_cast<CredentialKind>(i);
  }
  return std::nullopt;
}

std::string_view to_string(Role role) {
  return role_names[static_cast<std::size_t>(role)];
}

std::optional<Role> role_from_string(std::string_view name) {
  for (std::size_t i = 0; i < role_names.size(); ++i) {
    if (role_names[i] == name) return static_cast<Role>(i);
  }
  return std::nullopt;
}

std::shared_ptr<const Policy> make_policy(const config::GatewayConfig& config, const Clock& clock,
                                          const Policy* previous) {
  return std::make_shared<const ConfiguredPolicy>(config, clock, dynamic_cast<const ConfiguredPolicy*>(previous));
}

}  // namespace hive::policy
