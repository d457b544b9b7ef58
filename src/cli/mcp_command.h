#pragma once

#include <string>

#include "cli/context.h"

namespace CLI {
class App;
}

namespace hive::cli {

/// Adds `mcp` to `parent`. Both references must live as long as it.
void add_mcp_command(CLI::App& parent, Context& context, int& exit_code);

/// The configuration that makes a client ("claude-desktop", "cursor", "vscode") start `program mcp` with the settings
/// that this command line was given; nothing secret is in it.
std::string mcp_client_configuration(const Context& context, const std::string& client, const std::string& program);

}  // namespace hive::cli
