#include "agent/read_pool.h"

#include <utility>

namespace hive::agent {

ReadPool::ReadPool(size_t threads, size_t max_pending) : max_pending_(max_pending), threads_(0, threads) {}

ReadPool::~ReadPool() {
  finish();
}

bool ReadPool::run(net::Task task) {
  if (pending_ >= max_pending_) return false;
  ++pending_;
  threads_.run_blocking([this, task = std::move(task)]() mutable {
    // What the task holds must go before its place is given away.
    std::exchange(task, nullptr)();
    --pending_;
  });
  return true;
}

void ReadPool::finish() {
  threads_.stop();
}

}  // namespace hive::agent
