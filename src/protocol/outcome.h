#pragma once

#include <optional>
#include <string_view>

namespace hive::protocol {

/// How a call ended. Every call ends in exactly one of these, and the audit log says which.
enum class Outcome {
  success,    ///< it ran and did what was asked
  denied,     ///< nothing ran
  failure,    ///< it ran and went wrong, or could not be started
  cancelled,  ///< the caller withdrew it; what was running has been ended
  expired,    ///< it waited too long and was never sent, or its approval ran out
  unknown,    ///< it was sent, and the tunnel broke or the deadline passed before the answer
};

/// How much harm a tool can do (DESIGN section 2).
enum class Tier { read, write, admin };

std::string_view to_string(Outcome outcome);
std::optional<Outcome> outcome_from_string(std::string_view name);

std::string_view to_string(Tier tier);
/// Exact names only; the configuration loader resolves the aliases that the reference's documents use.
std::optional<Tier> tier_from_string(std::string_view name);

}  // namespace hive::protocol
