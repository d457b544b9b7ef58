#pragma once

#include <string>

#include "cli/context.h"

namespace hive::cli {

/// GET /api/status: agents and upstream servers.
ExitCode run_status(Context& context);
ExitCode run_agents(Context& context);

/// GET /api/tools; `agent` empty: the tools of all agents.
ExitCode run_tools(Context& context, const std::string& agent);

}  // namespace hive::cli
