#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include <sys/types.h>

#include "base/result.h"
#include "priv/walk.h"

namespace hive::priv {

/// What a copy did.
struct CopyReport {
  std::uint64_t entries = 0;          ///< files, folders and links made
  std::uint64_t bytes = 0;            ///< of content, cloned or copied, holes not counted
  std::uint64_t cloned_files = 0;     ///< that share their blocks with the source
  std::uint64_t skipped_special = 0;  ///< devices, pipes and sockets left out
  std::uint64_t changed = 0;          ///< files that changed while they were read
  bool out_of_space = false;          ///< admit() said no, or the disk was full: the copy is not complete
};

/// Owners in a tree that nspawn has shifted for a user namespace: `base` becomes 0 again.
struct OwnerShift {
  uid_t base = 0;
  [[nodiscard]] uid_t back(uid_t id) const;
};

struct CopyOptions {
  OwnerShift shift = {};
  bool may_clone = true;
  /// Asked once, before the first byte that can't be cloned, with the bytes that a copy of the whole tree would still
  /// take, and with 0 from time to time where folders and links alone take much room; false ends the copy.
  std::function<Result<bool>(std::uint64_t needed_bytes)> admit = {};
  /// Bytes of folders and long links, which no clone saves, after which admit() is asked again.
  std::uint64_t metadata_step = std::uint64_t{64} << 20;
};

/// Copies what is below `source` into the empty folder `destination`, entry by entry and by descriptor. Files are
/// cloned where the file system can, links are made anew byte for byte, groups of hard links stay groups (`links` is an
/// empty folder on the same file system for that; it is left filled). Owners, times and permission bits are kept;
/// setuid, setgid, the sticky bit of files, ACLs, file capabilities and every extended attribute but user.* are not.
/// No existing inode is changed.
Result<CopyReport> copy_tree(int source, int destination, int links, const Exclusions& exclusions,
                             const WalkLimits& limits, const CopyOptions& options);

/// The bytes that copying the regular files of a tree would take: whole blocks, without holes, each group of hard links
/// once.
Result<std::uint64_t> bytes_to_copy(int source, const Exclusions& exclusions, const WalkLimits& limits);

}  // namespace hive::priv
