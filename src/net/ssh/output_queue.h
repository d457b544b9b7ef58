#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace hive::net::ssh {

/// The bytes that wait to be sent on a channel, up to a limit. Gives its memory back when it is empty.
class OutputQueue {
 public:
  explicit OutputQueue(size_t max_bytes) : max_bytes_(max_bytes) {}

  /// Adds a line and its newline; false, and nothing is added, when it does not fit.
  [[nodiscard]] bool push_line(std::string_view line);

  [[nodiscard]] bool empty() const { return size() == 0; }
  [[nodiscard]] size_t size() const { return bytes_.size() - start_; }
  [[nodiscard]] size_t capacity() const { return bytes_.capacity(); }

  /// Up to `max_bytes` from the front; valid until the next change.
  [[nodiscard]] std::string_view front(size_t max_bytes) const {
    return std::string_view(bytes_).substr(start_, max_bytes);
  }
  void pop(size_t count);

  /// True once after push_line() failed and the queue has fallen below half of its limit.
  [[nodiscard]] bool take_writable_again();

 private:
  size_t max_bytes_;
  std::string bytes_;
  size_t start_ = 0;
  bool refused_ = false;
};

}  // namespace hive::net::ssh
