#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"

namespace hive::fleet {

/// One tool as tools/list described it.
struct Tool {
  std::string name;  ///< without prefix
  std::string description;
  std::string raw;  ///< the whole object, name not yet prefixed
};
using ToolList = std::vector<Tool>;

/// Figures of an agent that change with every line; what is read is of this moment.
struct AgentActivity {
  std::atomic<std::int64_t> last_seen_ns = 0;        ///< of the wall clock
  std::atomic<std::uint32_t> calls_in_flight = 0;    ///< of all its sessions
  std::atomic<std::uint32_t> draining_sessions = 0;  ///< replaced by a newer connection, finishing their calls
};

/// An agent that connects again and again.
struct Flapping {
  WallTime since;
  std::uint32_t connections = 0;  ///< within the window that is looked at
  /// Connections from different addresses replace each other: most likely one key is used on two machines.
  bool contested = false;
  std::vector<std::string> addresses;  ///< the last ones, newest first
};

/// What is known of one agent. Raw text is as the agent sent it, bounded in size.
struct AgentStatus {
  std::string id;
  std::string address;
  std::string key_fingerprint;
  std::string software;
  std::string os_version;
  std::string agent_version;
  std::vector<std::string> running_services;
  std::vector<std::string> open_ports;
  bool online = false;
  WallTime first_seen;
  WallTime connected_at;                     ///< of the newest connection
  WallTime last_seen;                        ///< where there is no activity; use seen()
  WallTime offline_since;                    ///< zero while it is online, and when it never was
  std::string offline_reason;                ///< one line for people
  WallTime keyless_since;                    ///< since when no line of authorized_keys is its own; zero: there is one
  std::uint64_t connections = 0;             ///< 0: its key is known, but it never connected
  std::uint64_t replacements = 0;            ///< how often a newer connection took the place of one that stood
  std::shared_ptr<const Flapping> flapping;  ///< null: it is steady
  std::shared_ptr<const ToolList> tools;     ///< null: not known, or offline
  std::shared_ptr<const AgentActivity> activity;  ///< null: none in this run of the gateway

  [[nodiscard]] bool has_connected() const { return online || connected_at != WallTime(); }
  /// When something was last heard of it; zero: never.
  [[nodiscard]] WallTime seen() const;
  [[nodiscard]] std::uint32_t calls_in_flight() const;
  [[nodiscard]] std::uint32_t draining_sessions() const;
  /// Whether it is online and lists this tool.
  [[nodiscard]] bool has_tool(std::string_view tool) const;
};
using AgentPointer = std::shared_ptr<const AgentStatus>;

/// "agent edge-1 is offline since ..." or "agent edge-1 has never connected", for people.
std::string offline_text(const AgentStatus& agent);

/// The fleet at one moment: immutable, and cheap to take whatever its size.
struct FleetSnapshot {
  std::uint64_t version = 0;         ///< another one for another content, other than the activity
  std::vector<AgentPointer> agents;  ///< sorted by id; never null

  /// null: there is none.
  [[nodiscard]] AgentPointer find(std::string_view id) const;
  /// The index of the first agent whose id sorts behind `id`.
  [[nodiscard]] std::size_t behind(std::string_view id) const;
};
using SnapshotPointer = std::shared_ptr<const FleetSnapshot>;

}  // namespace hive::fleet
