#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "base/clock.h"
#include "cli/call_result.h"
#include "cli/context.h"

namespace hive::cli {

/// Prints how a call ended, and returns its exit code. `progress` knows what was printed while it ran.
ExitCode report_answer(Context& context, bool raw, const CallAnswer& answer, const ProgressPrinter& progress);

/// Prints why a call has no answer; with -o json as an object on standard output as well.
ExitCode fail_call(Context& context, const Failure& failure);

/// A call that waits, or waited, for an approval.
struct ApprovedCall {
  std::optional<std::chrono::milliseconds> wait;  ///< nullopt: ask once; zero: until the request has ended
  bool raw = false;
  std::optional<WallTime> expires_at = {};  ///< of the request, where it is known
};

/// Fetches how the call of a request ended and reports it as one that needed no approval; says how to follow it where
/// it has not ended.
ExitCode report_approved_call(Context& context, const GatewayClient& gateway, const std::string& id,
                              const ApprovedCall& call);

/// Remote bytes do not go to a terminal as they are.
std::optional<Failure> refuse_raw_on_terminal(const Context& context, bool raw, std::string_view command);

}  // namespace hive::cli
