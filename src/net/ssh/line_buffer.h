#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace hive::net::ssh {

/// Cuts a stream of bytes into lines. Gives its memory back when it is empty, and never looks at a byte twice.
class LineBuffer {
 public:
  explicit LineBuffer(size_t max_line_bytes) : max_line_bytes_(max_line_bytes) {}

  void append(std::string_view bytes);

  /// The next complete line without its newline; valid until the next append() or compact(). nullopt when there is
  /// none, or when line_too_long().
  [[nodiscard]] std::optional<std::string_view> next_line();

  /// A line, complete or not, is longer than the limit. Nothing more comes out.
  [[nodiscard]] bool line_too_long() const { return too_long_; }

  /// Drops what next_line() has returned; frees a large buffer that is empty. Call it when done with a batch.
  void compact();

  [[nodiscard]] size_t size() const { return bytes_.size() - start_; }
  [[nodiscard]] size_t capacity() const { return bytes_.capacity(); }

 private:
  size_t max_line_bytes_;
  std::string bytes_;
  size_t start_ = 0;  // where the next line begins
  size_t scan_ = 0;   // no newline in [start_, scan_)
  bool too_long_ = false;
};

}  // namespace hive::net::ssh
