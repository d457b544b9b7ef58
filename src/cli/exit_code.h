#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "protocol/outcome.h"

namespace hive::cli {

/// How `myrmex` ends. Scripts branch on these, so they never change; --help and docs/cli.md list them.
enum class ExitCode : int {
  success = 0,
  error = 1,              ///< anything not named below
  usage = 2,              ///< the command line is wrong; nothing was sent
  denied = 3,             ///< refused by the gateway or the agent; nothing ran
  failure = 4,            ///< it ran and went wrong
  unreachable = 5,        ///< the gateway cannot be reached, or the agent is offline or unknown
  pending_approval = 6,   ///< it waits for a second person
  not_authenticated = 7,  ///< no token, or not one that the gateway knows
  unsettled = 8,          ///< cancelled, expired, or the outcome is unknown
  interrupted = 130,      ///< ended by Ctrl-C
};

/// The code for a call that ended in `outcome` for `reason` (the gateway's short code).
ExitCode exit_code_for(protocol::Outcome outcome, std::string_view reason);

/// The code for an HTTP status other than 200 when the answer names no outcome. `may_have_run`: the request was one
/// that changes something.
ExitCode exit_code_for_status(unsigned status, bool may_have_run);

}  // namespace hive::cli
