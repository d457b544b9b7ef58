#include "net/ssh/output_queue.h"

#include <utility>

namespace hive::net::ssh {

namespace {
/// As for incoming lines: more does not stay with an idle channel.
constexpr size_t kept_bytes = size_t{4} << 10;
}  // namespace

bool OutputQueue::push_line(std::string_view line) {
  if (line.size() >= max_bytes_ || size() > max_bytes_ - line.size() - 1) {
    refused_ = true;
    return false;
  }
  bytes_.reserve(bytes_.size() + line.size() + 1);
  bytes_.append(line);
  bytes_.push_back('\n');
  return true;
}

void OutputQueue::pop(size_t count) {
  start_ += count;
  if (start_ == bytes_.size()) {
    if (bytes_.capacity() > kept_bytes) {
      std::string().swap(bytes_);
    } else {
      bytes_.clear();
    }
    start_ = 0;
  } else if (start_ > size()) {
    bytes_.erase(0, start_);
    start_ = 0;
  }
}

bool OutputQueue::take_writable_again() {
  if (!refused_ || size() >= max_bytes_ / 2) return false;
  refused_ = false;
  return true;
}

}  // namespace hive::net::ssh
