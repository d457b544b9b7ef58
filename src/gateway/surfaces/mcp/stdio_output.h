#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <string>
#include <thread>

#include "net/runtime/lines.h"

namespace hive::mcp_surface {

/// Messages on their way to a client that reads a descriptor at its own pace. Nobody waits for it; what it has not read
/// is bounded, and one that is too slow gets nothing more. Thread-safe.
class StdioOutput {
 public:
  /// `broken` is called once, on any thread, when the client reads no more.
  StdioOutput(int fd, std::size_t max_unread_bytes, std::function<void()> broken);
  /// Drops what is left.
  ~StdioOutput();
  StdioOutput(const StdioOutput&) = delete;
  StdioOutput& operator=(const StdioOutput&) = delete;

  void send(std::string message);
  /// Takes nothing more, and waits until all is written, but not for long.
  void finish(std::chrono::milliseconds limit);

 private:
  void write_all();

  const std::size_t max_unread_bytes_;
  const std::function<void()> broken_;
  net::LineWriter writer_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::string> messages_;  // guarded by mutex_, as are the next ones
  std::size_t unread_bytes_ = 0;
  bool is_writing_ = false;
  bool is_closed_ = false;
  std::thread thread_;
};

}  // namespace hive::mcp_surface
