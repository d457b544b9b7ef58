#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "priv/conf_file.h"
#include "priv/site.h"
#include "priv/tree_copy.h"

/// The copy of an old root that the agent keeps in its work folder.
namespace hive::priv {

constexpr std::string_view salvage_prefix = "salvaged-rootfs-";
constexpr std::string_view old_root_mark = ".pre-ephemeral-";
constexpr std::string_view staging_prefix = ".hive-salvage-";

/// "20261130T125723Z-k3xq0a": the end of the names of a salvage and of an old root.
std::string time_suffix(WallTime now);

/// Whether `name` is `prefix` and then a time_suffix().
[[nodiscard]] bool is_stamped(std::string_view name, std::string_view prefix);

/// Whether a copy of `needed_bytes` leaves `percent` of the disk free. Exactly that much is enough.
[[nodiscard]] bool leaves_enough(const DiskSpace& disk, std::uint64_t needed_bytes, std::uint64_t percent);

/// How nspawn has shifted the owners of a root whose configuration asks for a user namespace.
OwnerShift shift_of(const ConfFile& conf, const struct stat& root);

/// The uid that a salvage is given to: what the settings say; else the owner of the agent's home in the old root, if it
/// is a uid for agents. Nothing that a guest has written is believed, and root never is the answer: nullopt then.
std::optional<uid_t> salvage_owner(const Site& site, std::string_view agent, int root, const OwnerShift& shift);

/// Copies what is worth keeping of `root` into a new folder `tree` of `staging`, for root alone until it is handed
/// over. With out_of_space in the report the copy is gone again.
Result<CopyReport> make_salvage(const Site& site, int root, int staging, const ConfFile& conf, const OwnerShift& shift);

/// Whether a root holds anything that the start of a container doesn't make: any file but the few that it writes.
/// Folders alone are no content: they stay in the template.
Result<bool> has_content(int root);

}  // namespace hive::priv
