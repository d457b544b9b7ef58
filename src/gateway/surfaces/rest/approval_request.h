#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "gateway/calls/approvals.h"

namespace hive::rest {

/// The body of POST /api/approvals.
struct ApprovalRequest {
  std::string id;
  calls::ApprovalAction action = calls::ApprovalAction::approve;
  std::string digest;  ///< empty: not given
  std::string comment;
};

/// Strict, like parse_call_request(): a misspelt member must not turn a word with conditions into one without.
Result<ApprovalRequest> parse_approval_request(std::string_view body);

/// Whether a text has the form of a request's id: 32 lower-case hexadecimal digits.
bool is_approval_id(std::string_view text);

}  // namespace hive::rest
