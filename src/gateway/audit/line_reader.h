#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace hive::audit {

/// Reads the lines of a log one after another in large pieces. The file may grow meanwhile; it is never mapped, because
/// a file that shrinks would then end the program. Not thread-safe.
class LineReader {
 public:
  /// Does not own `fd`. `name` is for messages.
  LineReader(int fd, std::string name, std::uint64_t offset = 0) : fd_(fd), name_(std::move(name)), offset_(offset) {}

  /// The next complete line without its newline, valid until the next call; nullopt at the end of the file. Calling
  /// again later finds what was added.
  Result<std::optional<std::string_view>> next();

  /// Where the line after the last returned one begins.
  [[nodiscard]] std::uint64_t offset() const { return offset_; }
  /// Bytes behind the last newline, after next() has returned nullopt.
  [[nodiscard]] std::string_view unterminated() const { return std::string_view(buffer_).substr(at_); }

 private:
  Result<bool> read_more();

  int fd_;
  std::string name_;
  std::uint64_t offset_;
  std::string buffer_;  // bytes of the file from offset_ - at_ on
  size_t at_ = 0;
};

}  // namespace hive::audit
