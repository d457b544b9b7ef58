#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cli/explanation.h"

namespace hive::cli {

/// For whom the gates are asked: the words of an "as" line.
struct PolicySubject {
  std::string text;         ///< the line, for reports
  AskedAs as;               ///< a role, and what else is said
  std::string token;        ///< a credential of the configuration: its field ("tokens[0]") or its identity
  std::string certificate;  ///< the common name of a client certificate
  std::string oidc;         ///< the subject of an identity token; its groups stand in `as`

  /// Whether the subject can only be found in a configuration.
  [[nodiscard]] bool needs_configuration() const { return !token.empty() || !certificate.empty() || !oidc.empty(); }
};

/// A call, and what the gates must say to it.
struct PolicyCase {
  std::string place;                   ///< "access.test:12"
  std::string text;                    ///< the line, for reports
  std::optional<std::size_t> subject;  ///< in PolicyCases::subjects; nullopt: whoever runs the test
  std::string tool;                    ///< AGENT__TOOL
  std::string arguments;               ///< raw JSON
  std::string verdict;                 ///< "allow", "deny", "ask" or "unknown"
  std::string reason;                  ///< empty: any
  std::string tier;                    ///< empty: any
};

struct PolicyCases {
  std::vector<PolicySubject> subjects;
  std::vector<PolicyCase> cases;
};

/// Reads a file of cases. A line is
///
///     # a comment
///     as role=ROLE [identity=NAME] [groups=A,B] [agents=A,B] [tags=A,B] [tools=A,B]
///     as token=FIELD-OR-IDENTITY
///     as certificate=COMMON-NAME
///     as oidc=SUBJECT [groups=A,B]
///     AGENT__TOOL [key=value ...] -> VERDICT [REASON] [tier=TIER]
///
/// Words are parted by blanks; a word, or what follows its first "=", may stand in quotes ('as it is', or "with \" and
/// \\"). A word that begins with "{" is all arguments as JSON. Values have the types of the built-in tool of that name;
/// those of other tools are JSON where they can be. All problems are reported together, a line each, with file and
/// line.
Result<PolicyCases> parse_policy_cases(std::string_view text, const std::string& file);

}  // namespace hive::cli
