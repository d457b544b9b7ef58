#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace hive::audit {

/// Reads the complete lines of a file backwards from `end`. Not thread-safe.
class BackwardLines {
 public:
  /// Does not own `fd`. `end` must be just behind a newline, or 0.
  BackwardLines(int fd, std::string name, std::uint64_t end) : fd_(fd), name_(std::move(name)), begin_(end) {}

  /// The line before the last returned one, valid until the next call; nullopt at the beginning of the file.
  Result<std::optional<std::string_view>> next();

  /// Where the last returned line begins.
  [[nodiscard]] std::uint64_t offset() const { return begin_ + rest_; }

 private:
  Result<void> read_more();

  int fd_;
  std::string name_;
  std::uint64_t begin_;  // of buffer_ in the file
  std::string buffer_;
  size_t rest_ = 0;  // bytes at the front of buffer_ that have not been returned
};

/// The last position in a file of `size` bytes that is just behind a newline; 0 if there is none within the longest
/// line.
Result<std::uint64_t> last_line_end(int fd, const std::string& name, std::uint64_t size);

}  // namespace hive::audit
