#pragma once

#include <array>
#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"

namespace hive::mcp_surface {

/// What a retry of a request must have in common with the request that was held.
struct StateBinding {
  std::string identity;  ///< of the caller, whichever credential was shown
  std::string request;   ///< operation_digest()
};

/// Hexadecimal SHA-256 of a method, what it is applied to, and its arguments; the order of members and white space do
/// not count.
std::string operation_digest(std::string_view method, std::string_view name, std::string_view raw_arguments);

/// Seals the state that a client carries between the rounds of a held call: "hive1.NONCE.EXPIRY.MAC", where MAC is an
/// HMAC-SHA-256 by a key that lives as long as the process, over all of it and what it is bound to. Thread-safe.
class RequestStates {
 public:
  RequestStates();

  [[nodiscard]] std::string seal(std::string_view nonce, const StateBinding& binding, SteadyTime expires_at) const;
  /// The nonce; otherwise one line that says what is wrong.
  [[nodiscard]] std::expected<std::string, std::string> open(std::string_view state, const StateBinding& binding,
                                                             SteadyTime now) const;
  /// Whether a state claims to be ours.
  static bool is_ours(std::string_view state);

 private:
  [[nodiscard]] std::string mac(std::string_view nonce, std::string_view expiry, const StateBinding& binding) const;

  std::array<std::uint8_t, 32> key_{};
};

}  // namespace hive::mcp_surface
