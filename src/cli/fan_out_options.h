#pragma once

#include "cli/fan_out_command.h"

namespace CLI {
class App;
}

namespace hive::cli {

/// Adds the options of `call` that are about many agents. `options` must outlive the parser.
void add_fan_out_options(CLI::App& command, FanOutOptions& options);

}  // namespace hive::cli
