#pragma once

#include <string>

#include "cli/context.h"

namespace hive::cli {

/// `myrmex config show`: the gateway's configuration, with every secret left out by the gateway.
ExitCode run_config_show(Context& context);

/// `myrmex config apply FILE`: puts another configuration in force; "-" reads standard input. Prints what changed and
/// what waits for a restart.
ExitCode run_config_apply(Context& context, const std::string& path);

}  // namespace hive::cli
