#include "gateway/policy/policy.h"

#include <array>

#include "base/strings.h"
#include "base/utf8.h"
#include "gateway/policy/approval_rules.h"
#include "gateway/policy/policy_version.h"
#include "gateway/policy/rate_limiter.h"
#include "gateway/policy/rule_text.h"
#include "gateway/policy/scope.h"
#include "gateway/policy/tier_table.h"

namespace hive::policy {

namespace {

constexpr std::size_t max_rate_keys_per_principal = 4096;
constexpr std::size_t max_rate_key_bytes = 512;
constexpr std::size_t max_shown_name_bytes = 64;

// A name that the caller sent, in a message to the caller.
std::string shown(std::string_view name) {
  return quote(utf8::truncate(name, max_shown_name_bytes));
}

class ConfiguredPolicy final : public Policy {
 public:
  ConfiguredPolicy(const config::GatewayConfig& config, const Clock& clock, const ConfiguredPolicy* previous)
      : version_(policy_version(config)),
        rules_(config),
        tiers_(config, rules_),
        approvals_(config, rules_),
        tags_(config.agent_tags.begin(), config.agent_tags.end()),
        rate_limit_(config.rate_limit_per_minute) {
    if (rate_limit_ <= 0) return;
    bool unchanged = previous != nullptr && previous->rate_limit_ == rate_limit_;
    rate_limiter_ = unchanged ? previous->rate_limiter_
                              : std::make_shared<RateLimiter>(static_cast<std::size_t>(rate_limit_),
                                                              max_rate_keys_per_principal, clock);
  }

  [[nodiscard]] const std::string& version() const override { return version_; }

  [[nodiscard]] protocol::Tier tier_of(std::string_view tool, std::string_view arguments) const override {
    return tiers_.tier_of(tool, arguments);
  }
  [[nodiscard]] protocol::Tier tier_of_upstream(std::string_view tool) const override {
    return tiers_.tier_of_upstream(tool);
  }
  [[nodiscard]] TierAnswer explain_tier(std::string_view tool, std::string_view arguments) const override {
    return tiers_.explain(tool, arguments);
  }

  [[nodiscard]] Decision check_role(const Question& question) const override {
    if (question.principal.role != Role::read_only) return Decision::allow();
    return {Verdict::deny, "role",
            "the role read-only may look at the fleet but not call tools; ask for a credential with the role operator",
            role_rule(question.principal)};
  }

  [[nodiscard]] Decision check_scope(const Question& question) const override {
    const Scope* scope = question.principal.scope();
    return scope == nullptr ? Decision::allow()
                            : check_scope(*scope, question.agent, question.tool, question.arguments);
  }

  [[nodiscard]] Decision check_approval(const Question& question) const override {
    if (!approvals_.asks(question.tier)) return Decision::allow();
    return {Verdict::ask, "approval_required",
            fmt::format("{} is of tier {} here and needs the approval of {}", shown(question.tool),
                        protocol::to_string(question.tier), approvals_.people(question.tier)),
            approvals_.asking_rule()};
  }

  [[nodiscard]] Decision check_rate(const Question& question) const override {
    if (rate_limiter_ == nullptr) return Decision::allow();
    auto wait = rate_limiter_->try_acquire(question.principal.name, rate_key(question));
    return wait ? refuse_rate(question, *wait) : Decision::allow();
  }

  [[nodiscard]] std::vector<GateAnswer> explain(const Question& question) const override {
    std::vector<GateAnswer> answers;
    answers.push_back({"role", check_role(question)});
    answers.push_back({"scope", check_scope(question)});
    answers.push_back({"approval", check_approval(question)});
    answers.push_back({"rate_limit", peek_rate(question)});
    const std::array<std::string, 4> why_allowed = {role_rule(question.principal), scope_rule(question),
                                                    approvals_.asking_rule(), rate_rule()};
    for (std::size_t i = 0; i < answers.size(); ++i) {
      if (answers[i].decision.allowed()) answers[i].decision.rule = why_allowed[i];
    }
    return answers;
  }

  [[nodiscard]] bool reaches(const Principal& principal, std::string_view agent) const override {
    const Scope* scope = principal.scope();
    return scope == nullptr || static_cast<bool>(reach_of(*scope, tags_, agent));
  }
  [[nodiscard]] bool reaches(const Principal& principal, std::string_view agent, std::string_view tool) const override {
    const Scope* scope = principal.scope();
    return scope == nullptr || (reach_of(*scope, tags_, agent) && matching_glob(scope->tools, tool) != nullptr);
  }

  [[nodiscard]] std::span<const std::string> tags_of(std::string_view agent) const override {
    auto found = tags_.find(agent);
    if (found == tags_.end()) return {};
    return found->second;
  }

  [[nodiscard]] unsigned approvals_needed(protocol::Tier tier) const override { return approvals_.needed(tier); }

  [[nodiscard]] Decision check_approver(const Principal& approver, const ApprovalSubject& subject) const override {
    if (Decision role = approvals_.check_role(approver); !role.allowed()) return role;
    if (Decision own = ApprovalRules::check_not_own(approver, subject); !own.allowed()) return own;
    if (const Scope* scope = approver.scope()) {
      Decision reach = check_scope(*scope, subject.agent, subject.tool, subject.arguments);
      if (!reach.allowed()) return reach;
    }
    return approvals_.check_group(approver, subject.tier);
  }

 private:
  [[nodiscard]] Decision check_scope(const Scope& scope, std::string_view agent, std::string_view tool,
                                     std::string_view arguments) const {
    if (!reach_of(scope, tags_, agent)) {
      return refuse_scope(
          fmt::format("this credential does not reach the agent {}; ask for one whose scope names it", shown(agent)),
          agents_rule(scope));
    }
    if (matching_glob(scope.tools, tool) == nullptr) {
      return refuse_scope(
          fmt::format("this credential may not use {}; ask for one whose scope lists the tool", shown(tool)),
          rules_.of_scope(scope, "tools", list_text(scope.tools)));
    }
    if (reaches_all_agents(scope)) return Decision::allow();
    NamedAgents named = agents_named_in(arguments);
    if (named.unclear) {
      return refuse_scope("which agents the arguments mean cannot be told; name them as strings in agent_ids",
                          agents_rule(scope));
    }
    if (named.all) {
      return refuse_scope("all_agents needs a credential that reaches the whole fleet; name the agents in agent_ids",
                          agents_rule(scope));
    }
    for (const std::string& id : named.ids) {
      if (reach_of(scope, tags_, id)) continue;
      return refuse_scope(fmt::format("the arguments name the agent {}, which this credential does not reach; "
                                      "ask for one whose scope names it",
                                      shown(id)),
                          agents_rule(scope));
    }
    return Decision::allow();
  }

  static Decision refuse_scope(std::string message, std::string rule) {
    return {Verdict::deny, "scope", std::move(message), std::move(rule)};
  }

  // The lines that say which agents a scope holds.
  [[nodiscard]] std::string agents_rule(const Scope& scope) const {
    if (scope.tags.empty()) return rules_.of_scope(scope, "agents", list_text(scope.agents));
    std::string tags = rules_.of_scope(scope, "tags", list_text(scope.tags));
    if (scope.agents.empty()) return tags;
    return rules_.of_scope(scope, "agents", list_text(scope.agents)) + "; " + tags;
  }

  // Why the scope of an allowed call reaches its agent.
  [[nodiscard]] std::string scope_rule(const Question& question) const {
    const Scope* scope = question.principal.scope();
    if (scope == nullptr) return "built-in: a credential without a scope reaches the whole fleet";
    Reach reach = reach_of(*scope, tags_, question.agent);
    return reach.tag.empty() ? rules_.of_scope(*scope, "agents", reach.agent)
                             : rules_.of_scope(*scope, "tags", reach.tag);
  }

  // An agent id holds no "__", so the key is unambiguous. No agent and tool have names as long as the bound together;
  // whoever invents such names shares one count among those that begin alike.
  static std::string rate_key(const Question& question) {
    std::string key;
    key.reserve(question.agent.size() + 2 + question.tool.size());
    key += question.agent;
    key += "__";
    key += question.tool;
    if (key.size() > max_rate_key_bytes) key.resize(max_rate_key_bytes);
    return key;
  }

  [[nodiscard]] std::string rate_rule() const {
    return rules_.of("rate_limit_per_minute", rate_limit_ > 0 ? std::to_string(rate_limit_) : std::string());
  }

  [[nodiscard]] Decision refuse_rate(const Question& question, std::chrono::milliseconds wait) const {
    return {Verdict::deny, "rate_limited",
            fmt::format("more than rate_limit_per_minute calls of {} on {}; try again in {} s", shown(question.tool),
                        shown(question.agent), std::chrono::ceil<std::chrono::seconds>(wait).count()),
            rate_rule(), wait};
  }

  [[nodiscard]] Decision peek_rate(const Question& question) const {
    if (rate_limiter_ == nullptr) return Decision::allow();
    auto wait = rate_limiter_->would_wait(question.principal.name, rate_key(question));
    return wait ? refuse_rate(question, *wait) : Decision::allow();
  }

  const std::string version_;
  const RuleText rules_;
  const TierTable tiers_;
  const ApprovalRules approvals_;
  const AgentTags tags_;
  const int rate_limit_;
  std::shared_ptr<RateLimiter> rate_limiter_;
};

}  // namespace

std::string_view to_string(Verdict verdict) {
  switch (verdict) {
    case Verdict::allow:
      return "allow";
    case Verdict::deny:
      return "deny";
    case Verdict::ask:
      return "ask";
    case Verdict::unknown:
      return "unknown";
  }
  return "unknown";
}

std::shared_ptr<const Policy> make_policy(const config::GatewayConfig& config, const Clock& clock,
                                          const Policy* previous) {
  return std::make_shared<const ConfiguredPolicy>(config, clock, dynamic_cast<const ConfiguredPolicy*>(previous));
}

}  // namespace hive::policy
