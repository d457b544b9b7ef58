#pragma once

#include <chrono>
#include <optional>

#include "cli/call_plan.h"
#include "cli/context.h"
#include "cli/fan_out_command.h"

namespace hive::cli {

/// The command line of `call`.
struct CallOptions {
  CallWords call;
  bool progress = false;
  bool raw = false;
  /// nullopt: do not wait for an approval. Zero: wait until the request has ended.
  std::optional<std::chrono::milliseconds> wait;
  /// How long to wait for an agent that is offline.
  std::chrono::seconds wait_online{0};
  FanOutOptions fan_out;
};

/// POST /api/call, or POST /api/fan-out where many agents are named: prints what the tool answered and returns how it
/// ended.
ExitCode run_call(Context& context, const CallOptions& options);

}  // namespace hive::cli
