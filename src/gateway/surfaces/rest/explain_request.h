#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "gateway/policy/principal.h"

namespace hive::rest {

/// The body of POST /api/explain.
struct ExplainRequest {
  /// Whose call it would be, where that is not the caller's own.
  struct Subject {
    policy::Role role = policy::Role::read_only;
    std::shared_ptr<const policy::Grant> grant;
  };
  std::string name;
  std::string arguments = "{}";  ///< raw JSON object
  std::optional<Subject> subject;
};

/// Strict, like parse_call_request(). Limits of a scope that are not given mean everything.
Result<ExplainRequest> parse_explain_request(std::string_view body);

}  // namespace hive::rest
