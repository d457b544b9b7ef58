#pragma once

#include <string>

namespace hive::priv {

/// Where everything lies, as the host's root names it. Every path is opened from the descriptor of `anchor`, which is
/// "/" on a host and a folder of its own in a test.
struct Layout {
  std::string anchor = "/";
  std::string conf_dir = "/etc/nixos-containers";
  std::string roots_dir = "/var/lib/nixos-containers";
  std::string agents_dir = "/var/lib/hyperhive/agents";
  std::string state_dir = "/var/lib/hive-priv";
  std::string run_dir = "/run/hive";
  std::string nix_profiles_dir = "/nix/var/nix/profiles";
  std::string journal_dir = "/var/log/journal";
  std::string host_machine_id = "/etc/machine-id";
  std::string settings_file = "/etc/hive-priv.json";

  /// The name under which a person on this machine finds `path`.
  [[nodiscard]] std::string shown(const std::string& path) const { return anchor == "/" ? path : anchor + path; }
};

}  // namespace hive::priv
