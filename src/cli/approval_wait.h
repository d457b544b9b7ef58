#pragma once

#include <chrono>
#include <expected>
#include <optional>
#include <string>

#include "cli/approval_view.h"
#include "cli/context.h"

namespace hive::cli {

/// What GET /api/approvals/ID/result says: how the call ended, or that it has not.
struct ApprovalResult {
  std::optional<net::http::ClientResponse> response;  ///< with status 200; nullopt: not ended
  std::string status;                                 ///< of the request when it has not ended: "pending", "running"
};

/// Asks for the result of a request's call, and waits for it until `deadline`; asks once when there is none. A gateway
/// that cannot be reached in between, as during its restart, is asked again until `unreachable_until`. Ctrl-C is a
/// Failure with the code interrupted.
struct ResultWait {
  std::optional<SteadyTime> deadline;
  SteadyTime unreachable_until;
  bool once = false;
};
std::expected<ApprovalResult, Failure> await_result(Context& context, const GatewayClient& gateway,
                                                    const std::string& id, const ResultWait& wait);

/// How to come back to a request later, for messages.
std::string how_to_follow(std::string_view id);

}  // namespace hive::cli
