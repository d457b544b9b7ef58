#include "gateway/surfaces/mcp/stdio_output.h"

#include "base/log.h"

namespace hive::mcp_surface {

StdioOutput::StdioOutput(int fd, std::size_t max_unread_bytes, std::function<void()> broken)
    : max_unread_bytes_(max_unread_bytes), broken_(std::move(broken)), writer_(fd), thread_([this] { write_all(); }) {}

StdioOutput::~StdioOutput() {
  finish(std::chrono::milliseconds(0));
  thread_.join();
}

void StdioOutput::send(std::string message) {
  bool is_too_slow = false;
  {
    std::lock_guard lock(mutex_);
    if (is_closed_) return;
    unread_bytes_ += message.size();
    is_too_slow = unread_bytes_ > max_unread_bytes_;
    is_closed_ = is_too_slow;
    if (!is_too_slow) messages_.push_back(std::move(message));
  }
  changed_.notify_all();
  if (!is_too_slow) return;
  log::warning("the MCP client on standard output does not read", {{"unread_bytes", max_unread_bytes_}});
  broken_();
}

void StdioOutput::write_all() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return is_closed_ || !messages_.empty(); });
    if (messages_.empty()) return;
    std::string message = std::move(messages_.front());
    messages_.pop_front();
    is_writing_ = true;
    lock.unlock();
    auto written = writer_.write(message);
    lock.lock();
    is_writing_ = false;
    unread_bytes_ -= message.size();
    if (written) {
      changed_.notify_all();
      continue;
    }
    messages_.clear();
    bool was_closed = std::exchange(is_closed_, true);
    lock.unlock();
    changed_.notify_all();
    if (!was_closed) {
      log::info("the MCP client on standard output has gone", {{"reason", written.error().message}});
      broken_();
    }
    return;
  }
}

void StdioOutput::finish(std::chrono::milliseconds limit) {
  writer_.limit_waiting(limit);
  std::unique_lock lock(mutex_);
  is_closed_ = true;
  changed_.notify_all();
  changed_.wait_for(lock, limit, [this] { return messages_.empty() && !is_writing_; });
}

}  // namespace hive::mcp_surface
