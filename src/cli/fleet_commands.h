#pragma once

#include <string>

#include "cli/context.h"

namespace hive::cli {

/// GET /api/status: agents and upstream servers.
ExitCode run_status(Context& context);

/// Which agents `agents` shows, and in which order; empty: all, by id.
struct AgentFilter {
  std::string status;  ///< "online", "offline", "never_connected", "flapping", "stale"
  std::string tag;
  std::string id;  ///< "*" stands for any characters
  std::string search;
  std::string sort;       ///< a key of GET /api/fleet, with "-" for the other way round
  std::size_t limit = 0;  ///< 0: no limit
};

/// The agents that the filter admits, page by page.
ExitCode run_agents(Context& context, const AgentFilter& filter);

/// GET /api/tools; `agent` empty: the tools of all agents.
ExitCode run_tools(Context& context, const std::string& agent);

}  // namespace hive::cli
