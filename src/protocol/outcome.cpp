#include "protocol/outcome.h"

#include <array>

namespace hive::protocol {

namespace {

constexpr std::array<std::string_view, 6> outcome_names = {"success",   "denied",  "failure",
                                                           "cancelled", "expired", "unknown"};
constexpr std::array<std::string_view, 3> tier_names = {"read", "write", "admin"};

template <class Enum, size_t Count>
std::optional<Enum> find_name(const std::array<std::string_view, Count>& names, std::string_view name) {
  for (size_t i = 0; i < Count; ++i) {
    if (names[i] == name) return static_cast<Enum>(i);
  }
  return std::nullopt;
}

}  // namespace

std::string_view to_string(Outcome outcome) {
  return outcome_names[static_cast<size_t>(outcome)];
}

std::optional<Outcome> outcome_from_string(std::string_view name) {
  return find_name<Outcome>(outcome_names, name);
}

std::string_view to_string(Tier tier) {
  return tier_names[static_cast<size_t>(tier)];
}

std::optional<Tier> tier_from_string(std::string_view name) {
  return find_name<Tier>(tier_names, name);
}

}  // namespace hive::protocol
