#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

#include "base/result.h"
#include "priv/ipv4.h"
#include "priv/layout.h"

namespace hive::priv {

/// What the owner of the host has set for one agent.
struct AgentSettings {
  std::optional<uid_t> uid;
  std::vector<std::string> bind_sources;  ///< beyond those that every agent has
};

/// What a caller on the socket may reach. Read from a file that root alone may write; the defaults need no file.
/// In paths, "{agent}" stands for the name of the agent.
struct Settings {
  std::vector<std::string> peer_users;
  std::vector<std::string> peer_groups = {"hive-core"};
  std::map<std::string, Ipv4Network, std::less<>> bridges = {{"hive0", {.address = 0x0a2a0000, .prefix_length = 24}}};
  std::vector<std::string> bind_sources;  ///< folders that a bind may take, or take something below
  std::vector<std::string> bind_targets;  ///< where in the guest a bind may show
  std::map<std::string, AgentSettings, std::less<>> agents;
  uid_t first_agent_uid = 1000;
  uid_t last_agent_uid = 65533;
  std::vector<std::string> excluded;         ///< not salvaged; relative to the root, "*" stands for one name
  std::vector<std::string> excluded_distro;  ///< nor these, where the guest's system lies in the root (not NixOS)
  bool allow_host_network = false;
  std::uint64_t keep_free_percent = 15;
  std::uint64_t max_kept_roots = 8;
  std::uint64_t max_salvage_entries = 5'000'000;
  std::chrono::seconds max_salvage_time = std::chrono::hours(1);
  std::chrono::seconds idle_exit = std::chrono::seconds(60);

  /// What holds without a file.
  static Settings defaults(const Layout& layout);

  /// The folders that `agent` may have bound.
  [[nodiscard]] std::vector<std::string> sources_of(std::string_view agent) const;
  /// A folder that all agents may have and that `path` lies below. What lies in it can be swapped for a link by one
  /// agent between the check of another one's start and nspawn, whoever owns it.
  [[nodiscard]] std::optional<std::string> shared_folder_above(std::string_view path) const;
  [[nodiscard]] std::vector<std::string> targets_of(std::string_view agent) const;
  [[nodiscard]] std::optional<uid_t> uid_of(std::string_view agent) const;
  [[nodiscard]] bool is_agent_uid(uid_t uid) const { return uid >= first_agent_uid && uid <= last_agent_uid; }
};

/// Reads the JSON text of the settings file. Unknown keys, wrong types and paths that would reach the host are errors
/// that name the key.
Result<Settings> parse_settings(std::string_view text, const Layout& layout);

/// The settings of this host: the file, or the defaults where there is none. A file that others than root may write is
/// refused.
Result<Settings> load_settings(const Layout& layout);

/// Whether a bind of `path` would show the guest, or let it change, what belongs to the host alone: the socket of
/// hive-priv, the configuration and the roots of containers, the state of hive-priv, the system's own folders, and
/// every folder above them. No setting opens these.
[[nodiscard]] bool belongs_to_the_host(std::string_view path, const Layout& layout);

}  // namespace hive::priv
