#pragma once

#include <cstdint>
#include <functional>

#include <sys/stat.h>

#include "base/result.h"

namespace hive::priv {

/// Lets `destination` share the blocks of `source`; false where the file systems can't.
Result<bool> clone_content(int source, int destination);

/// Copies the content that `status` promises, leaving holes out. Calls `more` with the bytes that were written, at
/// least every 64 MiB; its error ends the copy.
Result<void> copy_content(int source, int destination, const struct stat& status,
                          const std::function<Result<void>(std::uint64_t)>& more);

/// Copies the extended attributes user.*, within bounds; everything else stays behind.
Result<void> copy_user_attributes(int source, int destination);

/// Whether a file or folder has an access ACL. Its group bits are then the ACL's mask, and not what the group may do.
[[nodiscard]] bool has_access_list(int fd);

/// The whole blocks that the content of a file takes, holes not counted.
std::uint64_t content_blocks(const struct stat& status);

}  // namespace hive::priv
