#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>

namespace boost::asio {
class io_context;
}

/// The threads that the network rooms run on: workers, each with its own event loop, and a small pool for work that
/// blocks.
namespace hive::net {

/// Work handed to another thread. Must not throw.
using Task = std::move_only_function<void()>;

/// A timer that was scheduled; destroying it cancels it. Only on the worker that made it.
class Timer {
 public:
  class Entry;
  Timer();
  explicit Timer(std::unique_ptr<Entry> entry);
  Timer(Timer&&) noexcept;
  Timer& operator=(Timer&&) noexcept;
  ~Timer();
  void cancel();

 private:
  std::unique_ptr<Entry> entry_;
};

/// One thread with its event loop. What belongs to a worker is touched on that worker only.
class Worker {
 public:
  Worker();
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  [[nodiscard]] boost::asio::io_context& context();

  /// Runs `task` on this worker, later. Thread-safe. Many tasks cost one wake-up.
  void post(Task task);
  /// Runs `task` now if called on this worker, otherwise posts it. Thread-safe.
  void dispatch(Task task);
  [[nodiscard]] bool runs_here() const;

  /// Calls `task` once after `delay`, rounded up to the wheel's tick of 20 ms. Only on this worker. Costs no system
  /// call.
  [[nodiscard]] Timer schedule(std::chrono::milliseconds delay, Task task);

  /// Runs the loop on the calling thread until stop(). Used by Runtime and by single-threaded programs.
  void run();
  void stop();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// A fixed number of workers and the pool for blocking work.
class Runtime {
 public:
  explicit Runtime(size_t workers, size_t blocking_threads = 2);
  ~Runtime();
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  [[nodiscard]] size_t size() const;
  [[nodiscard]] Worker& worker(size_t index);
  /// The workers in turn. Thread-safe.
  [[nodiscard]] Worker& next_worker();
  /// Runs `task` where it may block: disks, DNS. Thread-safe.
  void run_blocking(Task task);
  /// Starts the workers' threads.
  void start();
  /// Stops the loops and joins the threads. Not from a worker.
  void stop();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace hive::net
