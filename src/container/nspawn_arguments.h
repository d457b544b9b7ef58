#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "container/conf.h"
#include "container/guest_network.h"
#include "container/layout.h"

namespace hive::container {

/// The files that the start helper makes for a guest in its run folder, and where they appear inside.
inline constexpr std::string_view network_file_name = "host0.network";
inline constexpr std::string_view resolver_file_name = "resolv.conf";

/// Where nix keeps what containers have installed, on hosts that have nix: such a guest sees the host's store, and its
/// own profiles and roots of the garbage collector on the host, so that they outlive its root and their packages too.
struct NixFolders {
  static constexpr std::string_view store = "/nix/store";
  static constexpr std::string_view profiles = "/nix/var/nix/profiles";
  static constexpr std::string_view roots = "/nix/var/nix/gcroots";
};

/// The complete argument vector of systemd-nspawn for a container, program first, that its file asks for.
/// EXTRA_NSPAWN_FLAGS is cut at white space as NixOS's own start script does it, but nothing is expanded; every word
/// must be a long option that leaves alone which root runs, as what and under which name. Failure names file and key.
Result<std::vector<std::string>> nspawn_arguments(const Conf& conf, std::string_view name,
                                                  const std::optional<GuestNetwork>& network, const Layout& layout);

/// Whether the host keeps nix profiles for containers: there is a folder per-container.
bool host_has_nix(const Layout& layout);

}  // namespace hive::container
