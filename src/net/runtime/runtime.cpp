#include "net/runtime/runtime.h"

#include <atomic>
#include <thread>
#include <vector>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>

namespace hive::net {

struct Runtime::State {
  State(size_t workers, size_t blocking_threads) : pool(blocking_threads) {
    for (size_t i = 0; i < workers; ++i)
      loops.push_back(std::make_unique<Worker>());
  }

  std::vector<std::unique_ptr<Worker>> loops;
  std::vector<std::thread> threads;
  std::atomic<size_t> next = 0;
  boost::asio::thread_pool pool;
};

Runtime::Runtime(size_t workers, size_t blocking_threads)
    : state_(std::make_unique<State>(workers, blocking_threads)) {}

Runtime::~Runtime() {
  stop();
}

size_t Runtime::size() const {
  return state_->loops.size();
}

Worker& Runtime::worker(size_t index) {
  return *state_->loops[index];
}

Worker& Runtime::next_worker() {
  return *state_->loops[state_->next.fetch_add(1, std::memory_order_relaxed) % state_->loops.size()];
}

void Runtime::run_blocking(Task task) {
  boost::asio::post(state_->pool, std::move(task));
}

void Runtime::start() {
  for (auto& loop : state_->loops) {
    state_->threads.emplace_back([&loop] { loop->run(); });
  }
}

void Runtime::stop() {
  state_->pool.join();
  for (auto& loop : state_->loops)
    loop->stop();
  for (std::thread& thread : state_->threads)
    thread.join();
  state_->threads.clear();
}

}  // namespace hive::net
