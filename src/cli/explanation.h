#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cli/exit_code.h"

namespace hive::cli {

/// What one gate says to a call.
struct GateView {
  std::string gate;
  std::string verdict;
  std::string reason;
  std::string message;
  std::string rule;
};

/// What the gates say to a call, from POST /api/explain or from a configuration file. Texts from a gateway are not yet
/// safe for a terminal.
struct ExplanationView {
  std::string verdict;  ///< "allow", "deny", "ask", "unknown"
  std::string reason;   ///< of the gate that decides
  std::string tier;
  std::string tier_rule;
  std::vector<GateView> gates;
};

Result<ExplanationView> parse_explanation(std::string_view body);

/// Somebody to ask the gates for. Empty members say nothing.
struct AskedAs {
  std::string role;
  std::string identity;
  std::vector<std::string> groups;
  std::vector<std::string> agents;
  std::vector<std::string> tags;
  std::vector<std::string> tools;

  [[nodiscard]] bool says_something() const {
    return !role.empty() || !identity.empty() || !groups.empty() || has_scope();
  }
  [[nodiscard]] bool has_scope() const { return !agents.empty() || !tags.empty() || !tools.empty(); }
};

/// The body of POST /api/explain. `arguments` is raw JSON.
std::string explain_request(std::string_view tool, std::string_view arguments, const AskedAs& as);

/// Exit code of a verdict: 0 it would run, 3 denied, 6 it would wait for an approval, 8 nobody can tell.
ExitCode exit_code_of_verdict(std::string_view verdict);

}  // namespace hive::cli
