#pragma once

#include "cli/output.h"

namespace CLI {
class App;
}

namespace hive::cli {

/// Adds `audit` with its subcommands to `parent`. They work on files alone and never talk to a gateway. When one has
/// run, its result is in `exit_code`: 0 good, 1 the log (proof, key) is bad or cannot be read; a wrong command line
/// throws CLI11's errors. Both references must live as long as `parent`.
void add_audit_commands(CLI::App& parent, int& exit_code, const OutputOptions& format);

}  // namespace hive::cli
