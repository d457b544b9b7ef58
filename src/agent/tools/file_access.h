#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/unique_fd.h"

/// Opening and reading files that a caller named, without trusting the name: by descriptor, once, regular files only,
/// never blocking.
namespace hive::agent {

/// Checks the form alone: absolute, no ".." component, no NUL or other control characters, bounded. Returns it without
/// doubled slashes and "." components.
Result<std::string> normalise_path(std::string_view path);

/// Whether `path` is `root` or lies under it, compared by components. Both normalised.
[[nodiscard]] bool lies_under(std::string_view path, std::string_view root);

/// Opens a regular file for reading, beneath `root` even when someone swaps folders for symbolic links meanwhile.
/// Links are followed as long as they stay under the root. Failure: permission_denied when it leads out of the root or
/// is not a file of a kind that may be read, not_found, io.
Result<UniqueFd> open_beneath(const std::string& root, const std::string& path);

/// Opens a regular file for reading, wherever links lead. The caller asks real_path() afterwards.
Result<UniqueFd> open_anywhere(const std::string& path);

/// Where the open file really is.
Result<std::string> real_path(const UniqueFd& file);

/// Refuses files of the kernel whose content is secret, endless or blocking, such as /proc/kcore, /proc/PID/environ and
/// the files of tracefs, judged by their file system and real path.
Result<void> check_kernel_file(const UniqueFd& file, std::string_view path);

struct FileContent {
  std::string bytes;
  std::uint64_t size_bytes = 0;  ///< of the whole file; what was read, where the kernel states no size
  bool truncated = false;
};

/// Reads from the start, until the end or `max_bytes`. Files without a stated size, as in /proc, are read to their end.
Result<FileContent> read_start(const UniqueFd& file, size_t max_bytes);

/// The last `lines` lines, without the final newline, looking at no more than the last `max_bytes`.
Result<std::string> read_last_lines(const UniqueFd& file, size_t lines, size_t max_bytes);

}  // namespace hive::agent
