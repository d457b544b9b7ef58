#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/check_status.h"
#include "base/clock.h"
#include "cli/context.h"

namespace hive::cli {

/// One step on the way to the gateway.
struct Check {
  std::string name;
  CheckStatus status = CheckStatus::ok;
  std::string detail;  ///< what was found; remote text in it is escaped when it is printed
  std::string remedy;  ///< what to do about it; empty when nothing
};

/// "2026-11-30T12:57:23.123Z" to the second; nullopt for anything else, also for another zone than UTC.
std::optional<WallTime> parse_rfc3339(std::string_view text);

/// Walks from the settings to the agents, step by step, and says at each what is wrong and what mends it. Success only
/// when every step is fine.
ExitCode run_doctor(Context& context);

}  // namespace hive::cli
