#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.h"
#include "crypto/ssh_key.h"

/// Changes to the text of an authorized_keys file that leave every other byte alone.
namespace hive::fleet {

/// `text` with a line for `key`. A last line without newline gets one, so that the two do not run together.
std::string with_key(std::string text, const crypto::PublicKey& key);

struct KeyRemoval {
  std::string text;
  std::size_t removed = 0;
};

/// `text` without the lines of `agent`; with a fingerprint, without the line of that key of it. Lines that repeat a
/// removed key go too, whatever their comment: with the first gone, they would begin to count.
KeyRemoval without_keys(std::string text, std::string_view agent, std::string_view fingerprint = {});

/// Replaces the content of an existing file, or makes one for its owner alone: temporary file beside it, fsync, rename,
/// fsync of the folder. Mode and owner stay; a symbolic link stays, and what it points to is replaced. When the owner
/// cannot be kept, nothing is changed.
Result<void> replace_keeping_attributes(const std::string& path, std::string_view content);

/// Keeps other programs, and other gateways on this machine, from changing a file at the same time: an exclusive lock
/// (flock) on PATH.lock while it lives. Threads of one process must take turns by themselves.
class FileLock {
 public:
  /// Waits a few seconds for another holder, then fails with unavailable.
  static Result<FileLock> take(const std::string& path);
  FileLock(FileLock&& other) noexcept;
  FileLock& operator=(FileLock&&) = delete;
  ~FileLock();

 private:
  explicit FileLock(int fd) : fd_(fd) {}
  int fd_;
};

}  // namespace hive::fleet
