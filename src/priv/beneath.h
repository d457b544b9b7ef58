#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

#include "base/result.h"
#include "base/unique_fd.h"
#include "priv/layout.h"

/// File-system steps by descriptor. Nothing here follows a link or leaves the folder that it is given, whatever
/// somebody does to the names meanwhile. See openat2(2).
namespace hive::priv {

/// Whether mount points below the folder may be entered.
enum class Mounts { enter, refuse };

/// Whether this kernel has openat2 (Linux 5.6). Without it nothing here works, and nothing falls back to less.
[[nodiscard]] bool kernel_has_openat2();

/// openat2 with RESOLVE_BENEATH, RESOLVE_NO_SYMLINKS and RESOLVE_NO_MAGICLINKS; `path` is relative. With
/// O_PATH|O_NOFOLLOW a link at the end is opened itself. Not open and errno on failure: ELOOP for a link, EXDEV for a
/// way out or a mount.
UniqueFd open_beneath(int folder, const char* path, int flags, Mounts mounts = Mounts::enter, mode_t mode = 0);

/// The descriptor that stands for "/".
Result<UniqueFd> open_anchor(const Layout& layout);

/// Opens the folder at an absolute path of the layout for reading. The error names it.
Result<UniqueFd> open_folder(int anchor, const std::string& path);

/// open_folder() where the folder and all those above it belong to root and nobody else may write to them.
/// nspawn resolves the path again and follows links, so the way to it must be out of everybody's reach.
Result<UniqueFd> open_trusted_folder(int anchor, const std::string& path);

/// Opens the folder `name` of `folder`, making it with `mode` if it is not there.
Result<UniqueFd> make_folder(int folder, const std::string& name, mode_t mode);

/// What an O_PATH descriptor stands for, opened with `flags`. The caller has looked at it with fstat before: opening a
/// device or a pipe can already do something.
Result<UniqueFd> reopen(int fd, int flags);

/// Reads the regular file `name` of `folder`, at most `max_bytes`; not_found if it isn't there.
Result<std::string> read_file_beneath(int folder, const std::string& name, size_t max_bytes);

/// Reads what is left of a regular file.
Result<std::string> read_all(int fd, std::string_view what, size_t max_bytes);

/// Writes all of it.
Result<void> write_all(int fd, std::string_view content, std::string_view what);

/// Replaces the file `name` of `folder` in one step: new file, fsync, rename, fsync of the folder. What stood there, a
/// link included, is replaced and not followed.
Result<void> replace_file(int folder, const std::string& name, std::string_view content, mode_t mode);

/// Removes a file and makes that durable; nothing there is fine.
Result<void> remove_file(int folder, const std::string& name);

/// Makes the entries of a folder durable.
Result<void> sync_folder(int folder, std::string_view what);

/// The names in a folder that begin with `prefix`, in byte order, without "." and ".."; at most `max_count` of them,
/// out of however many others.
Result<std::vector<std::string>> list_names(int folder, size_t max_count, std::string_view prefix = {});

/// Whether an entry exists; a link counts as one.
Result<bool> exists(int folder, const std::string& name);

/// Whether `fd` lies on another mount than `folder`.
Result<bool> is_mount_point(int folder, int fd);

/// `count` random characters of a-z 0-9.
std::string random_name(size_t count);

}  // namespace hive::priv
