#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/unique_fd.h"

namespace hive::audit {

/// The file of a log that this process writes: locked, and extended only by whole batches. Not thread-safe.
class LogFile {
 public:
  /// Opens or creates (mode 0600) the file and takes its lock. Refuses a symbolic link, a file that is not regular, one
  /// that others can write or strangers can read, and one that another process holds, which the message names.
  static Result<LogFile> open(const std::string& path);

  /// Writes at the end and waits until it is on disk. On failure the file is cut back, so nothing half-written stands
  /// in front of later data. Fails also when somebody else moved, deleted, cut or extended the file.
  Result<void> append(std::string_view bytes);

  /// Moves everything from `offset` on to a new file beside the log; returns its path. The copy is on disk before the
  /// log is cut.
  Result<std::string> move_tail_aside(std::uint64_t offset, std::uint64_t seq);

  [[nodiscard]] int fd() const { return fd_.get(); }
  [[nodiscard]] std::uint64_t size() const { return size_; }

 private:
  LogFile(std::string path, UniqueFd fd, std::uint64_t size)
      : path_(std::move(path)), fd_(std::move(fd)), size_(size) {}

  Result<void> check_undisturbed() const;
  Result<void> cut_back();

  std::string path_;
  UniqueFd fd_;
  std::uint64_t size_ = 0;  // up to here the file is good
  bool dirty_ = false;      // bytes of a failed write may stand behind size_
};

}  // namespace hive::audit
