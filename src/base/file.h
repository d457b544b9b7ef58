#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.h"

namespace hive {

/// Who may read a file that holds a secret.
enum class FileSecrecy {
  any,         ///< no check
  owner_only,  ///< refuse a file that group or others can read or write
};

/// Reads a whole regular file of at most `max_bytes`. The error names the path; a loose mode names the chmod that mends
/// it.
Result<std::string> read_file(const std::string& path, size_t max_bytes, FileSecrecy secrecy = FileSecrecy::any);

/// Replaces a file in one step: temporary file in the same folder, fsync, rename, fsync of the folder. On failure the
/// old file is untouched.
Result<void> write_file_atomically(const std::string& path, std::string_view content, unsigned mode);

/// Makes a folder that only its owner can enter, and the folders above it; one that exists stays as it is.
Result<void> make_private_folder(const std::string& path);

}  // namespace hive
