#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "priv/site.h"
#include "priv/tree_copy.h"

namespace hive::priv {

struct NixReport {
  std::uint64_t carried = 0;  ///< links made in the profile folder of the host
  std::uint64_t kept = 0;     ///< that were there already, and stayed
  std::uint64_t skipped = 0;  ///< entries that are no link into the store or to a sibling generation
};

/// Whether a link in a nix profile folder may be carried to the host: into the store, or to a generation beside it.
[[nodiscard]] bool is_profile_target(std::string_view target);

/// Carries the nix state of an agent's old home, ~/.local/state/nix where that is a folder, to the profile folder of
/// the container on the host, which the guest sees as /nix/var/nix/profiles. The destination is in the agent's reach,
/// so every step there is by descriptor, and a link in the place of a folder is permission_denied. Nothing is replaced.
/// Nothing to do without that folder, or on a host without nix.
Result<NixReport> carry_nix_state(const Site& site, const std::string& container, int root, uid_t owner,
                                  const OwnerShift& shift);

}  // namespace hive::priv
