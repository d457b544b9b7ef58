#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"
#include "config/gateway_config.h"
#include "gateway/policy/principal.h"
#include "protocol/outcome.h"

namespace hive::policy {

/// What a gate says to a call.
struct Decision {
  bool allowed = true;
  std::string reason;                        ///< a short code: "role", "scope", "approval_required", "rate_limited"
  std::string message;                       ///< one line for the caller, with the remedy
  std::chrono::milliseconds retry_after{0};  ///< for rate_limited

  static Decision allow() { return {}; }
};

/// The question that the gates are asked.
struct Question {
  const Principal& principal;
  std::string_view agent;
  std::string_view tool;
  std::string_view arguments;  ///< raw JSON
  protocol::Tier tier = protocol::Tier::write;
};

/// The gates that the gateway decides before a call leaves it (DESIGN section 2, gates 1 to 4). Thread-safe.
class Policy {
 public:
  virtual ~Policy() = default;
  /// The tier of a tool: the configuration's word, then the built-in table's, otherwise write.
  [[nodiscard]] virtual protocol::Tier tier_of(std::string_view tool) const = 0;
  [[nodiscard]] virtual Decision check_role(const Question& question) const = 0;
  [[nodiscard]] virtual Decision check_scope(const Question& question) const = 0;
  [[nodiscard]] virtual Decision check_approval(const Question& question) const = 0;
  /// Counts the call when it allows it.
  [[nodiscard]] virtual Decision check_rate(const Question& question) const = 0;
};

/// The policy of a checked configuration. With `previous`, what was counted for an unchanged rate limit goes on
/// counting.
std::shared_ptr<const Policy> make_policy(const config::GatewayConfig& config, const Clock& clock,
                                          const Policy* previous = nullptr);

}  // namespace hive::policy
