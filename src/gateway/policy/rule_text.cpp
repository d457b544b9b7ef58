#include "gateway/policy/rule_text.h"

namespace hive::policy {

namespace {
constexpr std::size_t max_list_bytes = 200;
}

RuleText::RuleText(const config::GatewayConfig& config) {
  places_.source_path = config.source_path;
  places_.lines = config.lines;
}

std::string RuleText::of(std::string_view field, std::string_view value) const {
  if (places_.lines.contains(field)) return fmt::format("{} = {}", places_.where(field), value);
  return value.empty() ? places_.where(field) : fmt::format("{} ({})", places_.where(field), value);
}

std::string RuleText::of_either(std::string_view field, std::string_view other, std::string_view value) const {
  return of(places_.lines.contains(field) ? field : other, value);
}

std::string RuleText::of_scope(const Scope& scope, std::string_view part, std::string_view value) const {
  std::string field = fmt::format("{}.{}", scope.field, part);
  return places_.lines.contains(field) ? of(field, value) : fmt::format("{} = {}", field, value);
}

std::string role_rule(const Principal& principal) {
  if (principal.grant != nullptr && !principal.grant->rule.empty()) return principal.grant->rule;
  return fmt::format("built-in: {} has the role {}", principal.name, to_string(principal.role));
}

std::string list_text(const std::vector<std::string>& values) {
  std::string text;
  for (const std::string& value : values) {
    if (text.size() + value.size() > max_list_bytes) return text + (text.empty() ? "..." : ", ...");
    if (!text.empty()) text += ", ";
    text += value;
  }
  return text;
}

}  // namespace hive::policy
