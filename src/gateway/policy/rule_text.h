#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "config/gateway_config.h"
#include "gateway/policy/principal.h"

namespace hive::policy {

/// Names the lines of a configuration for people: "gateway.json:12: risk_tiers.run_command = admin". Holds no secrets.
class RuleText {
 public:
  explicit RuleText(const config::GatewayConfig& config);

  /// The line of `field` and the value that decided; where the field is not set, that it is not, and its default.
  [[nodiscard]] std::string of(std::string_view field, std::string_view value) const;
  /// Of the first of two fields that stands in the file: a role may have a line of its own or stand on its token's.
  [[nodiscard]] std::string of_either(std::string_view field, std::string_view other, std::string_view value) const;
  /// The same for a part of a scope, which may also come from somewhere else than the file.
  [[nodiscard]] std::string of_scope(const Scope& scope, std::string_view part, std::string_view value) const;

 private:
  config::GatewayConfig places_;  // only source_path and lines are filled
};

/// The line that gave a caller its role.
std::string role_rule(const Principal& principal);

/// "a, b, c", cut after about 200 bytes: a rule is one line for a person.
std::string list_text(const std::vector<std::string>& values);

}  // namespace hive::policy
