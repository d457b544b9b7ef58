#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "cli/call_plan.h"
#include "cli/context.h"

namespace hive::cli {

/// The part of the command line of `call` that names many agents.
struct FanOutOptions {
  std::vector<std::string> agents;  ///< ids or globs
  std::vector<std::string> tags;    ///< or globs
  bool all = false;
  bool with_offline = false;
  std::optional<std::size_t> concurrency = {};
  std::optional<std::chrono::milliseconds> deadline = {};
  std::size_t stop_after = 0;
  std::chrono::seconds wait_online{0};  ///< how long each call may wait for an agent that is offline
  bool group = false;
  bool dry_run = false;
  bool yes = false;

  [[nodiscard]] bool names_agents() const { return all || !agents.empty() || !tags.empty(); }
};

/// POST /api/fan-out: prints a line an agent as they end, and returns the worst of their ends. Asks first where more
/// than one agent would be changed.
ExitCode run_fan_out(Context& context, const CallWords& words, const FanOutOptions& options);

}  // namespace hive::cli
