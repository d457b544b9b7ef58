#include "net/ssh/line_buffer.h"

namespace hive::net::ssh {

namespace {
/// A buffer of this size may stay with an idle channel; with thousands of channels larger ones would be felt.
constexpr size_t kept_bytes = 256;
}  // namespace

void LineBuffer::append(std::string_view bytes) {
  bytes_.append(bytes);
}

std::optional<std::string_view> LineBuffer::next_line() {
  if (too_long_) return std::nullopt;
  const size_t newline = bytes_.find('\n', scan_);
  const size_t end = newline == std::string::npos ? bytes_.size() : newline;
  scan_ = end;
  if (end - start_ > max_line_bytes_) {
    too_long_ = true;
    return std::nullopt;
  }
  if (newline == std::string::npos) return std::nullopt;
  const std::string_view line = std::string_view(bytes_).substr(start_, newline - start_);
  start_ = scan_ = newline + 1;
  return line;
}

void LineBuffer::compact() {
  if (start_ == bytes_.size()) {
    if (bytes_.capacity() > kept_bytes) {
      std::string().swap(bytes_);
    } else {
      bytes_.clear();
    }
    scan_ = start_ = 0;
    return;
  }
  // Moving the rest is worth it only when more is dropped than moved: the cost per byte stays constant.
  if (start_ < bytes_.size() - start_) return;
  bytes_.erase(0, start_);
  scan_ -= start_;
  start_ = 0;
}

}  // namespace hive::net::ssh
