#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "gateway/fleet/agent_status.h"
#include "gateway/surfaces/rest/object_writer.h"

namespace hive::rest {

/// The name of the operating system as people see it.
std::string_view os_text(const fleet::AgentStatus& agent);
/// "online", "offline" or "never_connected".
std::string_view state_text(const fleet::AgentStatus& agent);

/// How many agents there are of each state.
struct AgentCounts {
  std::size_t total = 0;
  std::size_t online = 0;
  std::size_t never_connected = 0;
  std::size_t flapping = 0;

  void add(const fleet::AgentStatus& agent);
  /// As members of an object.
  void append_to(ObjectWriter& object) const;
  [[nodiscard]] std::string json() const;
};

/// An agent as GET /api/status shows it.
void append_status(std::string& out, const fleet::AgentStatus& agent, const std::vector<std::string>& tags);

/// An agent as GET /api/fleet shows it.
void append_fleet_entry(std::string& out, const fleet::AgentStatus& agent, const std::vector<std::string>& tags,
                        std::string_view gateway_id, bool with_history);

}  // namespace hive::rest
