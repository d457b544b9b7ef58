#pragma once

#include "cli/context.h"

namespace CLI {
class App;
}

namespace hive::cli {

/// Adds `upstreams` with `held-back` and `accept` to `parent`. All references must outlive the parser.
void add_upstream_commands(CLI::App& parent, Context& context, int& exit_code);

}  // namespace hive::cli
