#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include "net/runtime/runtime.h"

namespace hive::net {

class TimerWheel;

/// One scheduled task, owned by its Timer and linked into a list of the wheel until it runs or is cancelled.
class Timer::Entry {
 public:
  Entry() = default;
  Entry(const Entry&) = delete;
  Entry& operator=(const Entry&) = delete;
  ~Entry() { unlink(); }

  void insert_before(Entry& other) {
    previous_ = other.previous_;
    next_ = &other;
    previous_->next_ = this;
    other.previous_ = this;
  }
  void unlink() {
    previous_->next_ = next_;
    next_->previous_ = previous_;
    previous_ = next_ = this;
  }
  [[nodiscard]] bool is_linked() const { return next_ != this; }
  [[nodiscard]] Entry* next() const { return next_; }

  std::uint64_t due_tick = 0;
  TimerWheel* wheel = nullptr;  ///< while linked
  Task task;

 private:
  Entry* previous_ = this;
  Entry* next_ = this;
};

/// A hashed timer wheel: scheduling and cancelling cost no search and mostly no system call. One Asio timer sleeps
/// until the next slot that holds something, so a quiet worker is not woken by deadlines that lie ahead. For the many
/// deadlines that rarely pass. After a pause of the whole worker (SIGSTOP, an overloaded machine) nothing is due for
/// another second, so that what came in meanwhile is read before a deadline says that it did not come. Belongs to one
/// worker; what is still scheduled when the wheel goes is dropped.
class TimerWheel {
 public:
  static constexpr std::chrono::milliseconds tick{20};

  explicit TimerWheel(boost::asio::io_context& context);
  ~TimerWheel();
  TimerWheel(const TimerWheel&) = delete;
  TimerWheel& operator=(const TimerWheel&) = delete;

  std::unique_ptr<Timer::Entry> schedule(std::chrono::milliseconds delay, Task task);

 private:
  friend class Timer;
  static constexpr size_t slot_count = 512;
  static constexpr std::uint64_t pause_ticks = 50;  // later than this by its own timer, the worker did not run
  static constexpr std::uint64_t grace_ticks = 50;

  [[nodiscard]] std::uint64_t current_tick() const;
  [[nodiscard]] std::uint64_t next_occupied_tick() const;
  void arm(std::uint64_t at_tick);
  void on_tick(std::uint64_t due_tick);
  void remove(Timer::Entry& entry);

  boost::asio::steady_timer timer_;
  std::vector<Timer::Entry> slots_;  // heads of circular lists
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::uint64_t last_tick_ = 0;  // slots up to this one have been run
  size_t entries_ = 0;
  std::uint64_t hold_tick_ = 0;   // after a pause: nothing runs before this one; 0: no pause
  std::uint64_t armed_tick_ = 0;  // when the Asio timer goes off; 0: not set
};

}  // namespace hive::net
