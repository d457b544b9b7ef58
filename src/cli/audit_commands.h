#pragma once

#include "cli/context.h"

namespace CLI {
class App;
}

namespace hive::cli {

/// Adds `audit` with its subcommands to `parent`. They work on files alone; only `list --gateway` asks a gateway. When
/// one has run, its result is in `exit_code`: 0 good, 1 the log (proof, key) is bad or cannot be read; a wrong command
/// line throws CLI11's errors. Both references must live as long as `parent`.
void add_audit_commands(CLI::App& parent, int& exit_code, Context& context);

}  // namespace hive::cli
