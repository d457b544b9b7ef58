#include <atomic>
#include <mutex>
#include <thread>
#include <vector>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>

#include "net/runtime/runtime.h"
#include "net/runtime/timer_wheel.h"

namespace hive::net {

struct Worker::State {
  State() : guard(boost::asio::make_work_guard(context)), wheel(context) {}

  void drain() {
    {
      std::lock_guard lock(mutex);
      running.swap(inbox);
    }
    for (Task& task : running)
      task();
    running.clear();
  }

  boost::asio::io_context context{1};
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> guard;
  std::mutex mutex;
  std::vector<Task> inbox;    // guarded by mutex
  std::vector<Task> running;  // of this worker; kept for its memory
  std::atomic<std::thread::id> thread;
  TimerWheel wheel;
};

Worker::Worker() : state_(std::make_unique<State>()) {}
Worker::~Worker() = default;

boost::asio::io_context& Worker::context() {
  return state_->context;
}

void Worker::post(Task task) {
  bool first = false;
  {
    std::lock_guard lock(state_->mutex);
    first = state_->inbox.empty();
    state_->inbox.push_back(std::move(task));
  }
  if (first) boost::asio::post(state_->context, [state = state_.get()] { state->drain(); });
}

void Worker::dispatch(Task task) {
  if (runs_here()) {
    task();
  } else {
    post(std::move(task));
  }
}

bool Worker::runs_here() const {
  return state_->thread.load(std::memory_order_relaxed) == std::this_thread::get_id();
}

Timer Worker::schedule(std::chrono::milliseconds delay, Task task) {
  return Timer(state_->wheel.schedule(delay, std::move(task)));
}

void Worker::run() {
  state_->thread.store(std::this_thread::get_id());
  state_->context.run();
  state_->thread.store(std::thread::id());
}

void Worker::stop() {
  state_->context.stop();
}

}  // namespace hive::net
