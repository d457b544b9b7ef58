#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "gateway/policy/principal.h"
#include "protocol/outcome.h"

namespace hive::policy {

/// What the gates before the agent say to a call. Pure decisions; thread-safe.
struct Decision {
  bool allowed = true;
  std::string reason;   ///< a short code: "role", "scope", "rate_limited", "approval_required"
  std::string message;  ///< one line for the caller
};

/// The question that the gates are asked.
struct Question {
  const Principal& principal;
  std::string_view agent;
  std::string_view tool;
  std::string_view arguments;  ///< raw JSON
  protocol::Tier tier = protocol::Tier::write;
};

class Policy {
 public:
  virtual ~Policy() = default;
  /// The tier of a tool: the configuration's word, the built-in table's, otherwise write.
  [[nodiscard]] virtual protocol::Tier tier_of(std::string_view tool) const = 0;
  [[nodiscard]] virtual Decision check_role(const Question& question) const = 0;
  [[nodiscard]] virtual Decision check_scope(const Question& question) const = 0;
  [[nodiscard]] virtual Decision check_approval(const Question& question) const = 0;
  [[nodiscard]] virtual Decision check_rate(const Question& question) const = 0;
};

}  // namespace hive::policy
