#pragma once

#include <atomic>
#include <cstddef>

#include "net/runtime/runtime.h"

namespace hive::agent {

/// Threads for reading files that a caller named. They are apart from those that start commands and dial: a read from
/// a dead network file system never returns, and an agent without a free thread would be offline.
class ReadPool {
 public:
  ReadPool(size_t threads, size_t max_pending);
  /// Waits for what runs, as finish() does.
  ~ReadPool();
  ReadPool(const ReadPool&) = delete;
  ReadPool& operator=(const ReadPool&) = delete;

  /// Runs `task` on one of the threads. False, and nothing will run, when `max_pending` tasks have not returned yet.
  /// Only from one thread.
  [[nodiscard]] bool run(net::Task task);
  /// Waits until all tasks have returned; nothing may be run afterwards. Does not end while a read hangs.
  void finish();
  /// Tasks that have not returned.
  [[nodiscard]] size_t pending() const { return pending_; }

 private:
  const size_t max_pending_;
  std::atomic<size_t> pending_ = 0;
  net::Runtime threads_;
};

}  // namespace hive::agent
