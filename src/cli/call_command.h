#pragma once

#include <string>
#include <vector>

#include "cli/context.h"

namespace hive::cli {

/// The command line of `call`.
struct CallOptions {
  std::vector<std::string> words;  ///< AGENT__TOOL (unless `tool` is given), then key=value
  std::string arguments;           ///< --arguments: JSON, or "-" for standard input; empty: none
  std::string agent;
  std::string tool;
  bool progress = false;
  bool raw = false;
};

/// POST /api/call: prints what the tool answered and returns how it ended.
ExitCode run_call(Context& context, const CallOptions& options);

}  // namespace hive::cli
