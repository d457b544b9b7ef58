#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cli/upstream_view.h"

namespace hive::cli {

/// What `status` and `agents` show of GET /api/status. Texts are as the gateway sent them: not yet safe for a terminal.
struct AgentView {
  std::string id;
  std::string address;
  std::string os_version;
  std::vector<std::string> services;
  std::vector<std::string> ports;
  bool online = true;  ///< gateways of the reference list only agents that are
  std::string last_seen;
  std::string offline_since;
  bool has_connected = true;
  std::vector<std::string> tags;
  std::string flapping_since;  ///< empty: it is steady
  bool contested = false;      ///< connections from different addresses replace each other
};

/// How many agents there are of each state, whatever part of them is shown.
struct FleetCounts {
  std::int64_t total = 0;
  std::int64_t online = 0;
  std::int64_t never_connected = 0;
  std::int64_t flapping = 0;
};

struct FleetView {
  std::vector<AgentView> agents;
  std::vector<UpstreamView> upstreams;
  std::string raw_agents = "[]";  ///< JSON
  std::string raw_upstreams = "[]";
  std::int64_t pending_approvals = 0;
  FleetCounts counts;
  std::string next_cursor;  ///< of the page behind this one; empty: there is none
};

/// Reads the body of GET /api/status. Members that are missing or null are empty.
Result<FleetView> parse_fleet(std::string_view body);

struct ToolView {
  std::string name;
  std::string description;
  std::string input_schema;  ///< raw JSON, empty when absent
};

/// Where GET /api/tools goes on behind a page; empty: nowhere.
std::string next_cursor_of(std::string_view body);

/// Reads the body of GET /api/tools.
Result<std::vector<ToolView>> parse_tools(std::string_view body);

/// The raw array "tools" of that body, with the tools of one agent only unless `agent` is empty.
Result<std::string> tools_of_agent(std::string_view body, std::string_view agent);

}  // namespace hive::cli
