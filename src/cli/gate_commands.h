#pragma once

#include <chrono>
#include <optional>

#include "cli/context.h"

namespace CLI {
class App;
}

namespace hive::cli {

struct CallWords;

/// Adds the commands about who may do what: approvals, explain, policy, token and config. Context and exit code must
/// outlive the parser's run.
void add_gate_commands(CLI::App& parent, Context& context, int& exit_code);

/// The words of a call, as `call` and `explain` take them.
void add_call_words(CLI::App& command, CallWords& words);

/// `--wait` and `--wait=SECONDS`. Zero stands for no limit.
void add_wait_option(CLI::App& command, std::optional<std::chrono::milliseconds>& wait, const char* description);

}  // namespace hive::cli
