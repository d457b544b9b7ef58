#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"

namespace hive::store {

class Connection;

/// What is kept of one agent. It is shown to people, and decides nothing.
struct AgentRow {
  std::string id;
  std::string address;
  std::string key_fingerprint;
  std::string software;
  std::string os_version;
  std::string agent_version;
  std::string services = "[]";  ///< JSON array of strings
  std::string ports = "[]";     ///< the same
  WallTime first_seen;
  WallTime connected_at;
  WallTime last_seen;
  std::optional<WallTime> offline_since;  ///< nullopt: it was online
  std::string offline_reason;
  std::optional<WallTime> keyless_since;
  std::uint64_t connections = 0;
  std::uint64_t replacements = 0;
};

/// The table of last-known agents. On the store's thread.
class AgentTable {
 public:
  explicit AgentTable(Connection& connection) : connection_(connection) {}

  /// All rows, sorted by id.
  Result<std::vector<AgentRow>> load();
  /// Writes `rows` over what there is, and removes the agents `forgotten`; all or nothing.
  Result<void> write(std::span<const AgentRow> rows, std::span<const std::string> forgotten);

  /// Notes that the gateway runs at `now`: agents that it leaves as online were seen about then.
  Result<void> note_alive(WallTime now);
  /// The last such note; nullopt: there is none.
  Result<std::optional<WallTime>> last_alive();

 private:
  Connection& connection_;
};

}  // namespace hive::store
