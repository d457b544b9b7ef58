#pragma once

#include "cli/context.h"

namespace CLI {
class App;
}

namespace hive::cli {

/// Adds `bootstrap`, `enroll-token`, `enroll`, `rotate` and `keys` to `parent`, and `revoke` to its command `agents`,
/// which must be there. All references must outlive the parser.
void add_enrolment_commands(CLI::App& parent, Context& context, int& exit_code);

}  // namespace hive::cli
