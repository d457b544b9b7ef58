#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "config/gateway_config.h"
#include "gateway/policy/approval.h"
#include "gateway/policy/principal.h"
#include "protocol/outcome.h"

namespace hive::policy {

enum class Verdict {
  allow,
  deny,
  ask,      ///< waits for the approval of other people
  unknown,  ///< cannot be told without running the call
};
std::string_view to_string(Verdict verdict);

/// What a gate says to a call.
struct Decision {
  Verdict verdict = Verdict::allow;
  std::string reason;   ///< a short code: "role", "scope", "approval_required", "rate_limited"
  std::string message;  ///< one line for the caller, with the remedy
  std::string rule;     ///< the configuration line that decided; where it is allowed, only explain() fills it
  std::chrono::milliseconds retry_after{0};  ///< for rate_limited

  [[nodiscard]] bool allowed() const { return verdict == Verdict::allow; }
  static Decision allow() { return {}; }
};

/// The question that the gates are asked.
struct Question {
  const Principal& principal;
  std::string_view agent;
  std::string_view tool;
  std::string_view arguments;  ///< raw JSON, already validated
  protocol::Tier tier = protocol::Tier::write;
};

/// One line of an explanation: what a gate says, and why.
struct GateAnswer {
  std::string_view gate;  ///< "role", "scope", "approval", "rate_limit"
  Decision decision;
};

/// A tier, and what gave it.
struct TierAnswer {
  protocol::Tier tier = protocol::Tier::write;
  std::string rule;
};

/// The gates that the gateway decides before a call leaves it (DESIGN section 2, gates 1 to 4). Thread-safe.
class Policy {
 public:
  virtual ~Policy() = default;

  /// Hexadecimal SHA-256 of everything that decides: the same for the same rules, whatever the file looks like. Does
  /// not depend on the values of secrets other than through the names of the principals.
  [[nodiscard]] virtual const std::string& version() const = 0;

  /// The tier of a call: what risk_tiers says of the command (run_command), then of the tool, then the built-in table,
  /// otherwise write. Arguments from which the command cannot be told count as the strictest of them.
  [[nodiscard]] virtual protocol::Tier tier_of(std::string_view tool, std::string_view arguments) const = 0;
  /// The tier of an upstream server's tool: what risk_tiers says of its name, otherwise write, whatever it is called.
  [[nodiscard]] virtual protocol::Tier tier_of_upstream(std::string_view tool) const = 0;
  [[nodiscard]] virtual TierAnswer explain_tier(std::string_view tool, std::string_view arguments) const = 0;

  [[nodiscard]] virtual Decision check_role(const Question& question) const = 0;
  /// Also for the agents that the arguments name (agent, agent_id, agents, agent_ids, all_agents).
  [[nodiscard]] virtual Decision check_scope(const Question& question) const = 0;
  /// allow, or ask.
  [[nodiscard]] virtual Decision check_approval(const Question& question) const = 0;
  /// Counts the call when it allows it.
  [[nodiscard]] virtual Decision check_rate(const Question& question) const = 0;

  /// All gates in their order, without stopping at the first refusal and without counting the call.
  [[nodiscard]] virtual std::vector<GateAnswer> explain(const Question& question) const = 0;

  /// Whether a credential reaches an agent at all, or one tool of it: for listings.
  [[nodiscard]] virtual bool reaches(const Principal& principal, std::string_view agent) const = 0;
  [[nodiscard]] virtual bool reaches(const Principal& principal, std::string_view agent,
                                     std::string_view tool) const = 0;

  /// The tags of an agent (agent_tags); valid as long as the policy.
  [[nodiscard]] virtual std::span<const std::string> tags_of(std::string_view agent) const = 0;

  /// How many people must agree to a call of this tier.
  [[nodiscard]] virtual unsigned approvals_needed(protocol::Tier tier) const = 0;
  /// Whether `approver` may agree to what `subject` asks: an admin, another identity than the requester and than the
  /// person on whose behalf it asks, of a named group where the rule names some, with the agent and the tool in scope.
  /// Reasons: "role", "own_request", "scope", "group".
  [[nodiscard]] virtual Decision check_approver(const Principal& approver, const ApprovalSubject& subject) const = 0;
};

/// The policy of a checked configuration. With `previous`, what was counted for an unchanged rate limit goes on
/// counting.
std::shared_ptr<const Policy> make_policy(const config::GatewayConfig& config, const Clock& clock,
                                          const Policy* previous = nullptr);

}  // namespace hive::policy
