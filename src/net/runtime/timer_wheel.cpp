#include "net/runtime/timer_wheel.h"

#include <algorithm>
#include <utility>

namespace hive::net {

Timer::Timer() = default;
Timer::Timer(std::unique_ptr<Entry> entry) : entry_(std::move(entry)) {}
Timer::Timer(Timer&&) noexcept = default;

Timer& Timer::operator=(Timer&& other) noexcept {
  if (this != &other) {
    cancel();
    entry_ = std::move(other.entry_);
  }
  return *this;
}

Timer::~Timer() {
  cancel();
}

void Timer::cancel() {
  // Taken first: what the task holds may own this timer.
  std::unique_ptr<Entry> entry = std::move(entry_);
  if (entry != nullptr && entry->is_linked()) entry->wheel->remove(*entry);
}

TimerWheel::TimerWheel(boost::asio::io_context& context) : timer_(context), slots_(slot_count) {}

TimerWheel::~TimerWheel() {
  for (Timer::Entry& head : slots_) {
    while (head.is_linked())
      head.next()->unlink();
  }
}

std::uint64_t TimerWheel::current_tick() const {
  return static_cast<std::uint64_t>((std::chrono::steady_clock::now() - start_) / tick);
}

std::unique_ptr<Timer::Entry> TimerWheel::schedule(std::chrono::milliseconds delay, Task task) {
  std::uint64_t now = current_tick();
  if (entries_ == 0) last_tick_ = now;
  auto entry = std::make_unique<Timer::Entry>();
  auto ticks = static_cast<std::uint64_t>((std::max(delay, std::chrono::milliseconds(0)) + tick) / tick);
  entry->due_tick = now + ticks;
  entry->wheel = this;
  entry->task = std::move(task);
  entry->insert_before(slots_[entry->due_tick % slot_count]);
  ++entries_;
  if (armed_tick_ == 0 || entry->due_tick < armed_tick_) arm(entry->due_tick);
  return entry;
}

void TimerWheel::remove(Timer::Entry& entry) {
  entry.unlink();
  --entries_;
}

// Its entries may be due in a later turn of the wheel; waking for them once a turn is cheaper than looking at each.
std::uint64_t TimerWheel::next_occupied_tick() const {
  for (std::uint64_t tick = last_tick_ + 1; tick <= last_tick_ + slot_count; ++tick) {
    if (slots_[tick % slot_count].is_linked()) return tick;
  }
  return last_tick_ + slot_count;
}

void TimerWheel::arm(std::uint64_t at_tick) {
  armed_tick_ = at_tick;
  // Cancels the wait that was set before, whose handler then finds another tick.
  timer_.expires_at(start_ + tick * static_cast<std::int64_t>(at_tick));
  timer_.async_wait([this, at_tick](const boost::system::error_code& error) {
    if (error || armed_tick_ != at_tick) return;
    armed_tick_ = 0;
    on_tick(at_tick);
  });
}

void TimerWheel::on_tick(std::uint64_t due_tick) {
  std::uint64_t now = current_tick();
  if (hold_tick_ == 0 && now > due_tick + pause_ticks) hold_tick_ = now + grace_ticks;
  if (now < hold_tick_) return arm(hold_tick_);
  hold_tick_ = 0;
  // After a long stall one turn of the wheel visits every slot.
  std::uint64_t first = std::max(last_tick_ + 1, now >= slot_count ? now - slot_count + 1 : 0);
  Timer::Entry due;
  for (std::uint64_t at = first; at <= now; ++at) {
    Timer::Entry& head = slots_[at % slot_count];
    for (Timer::Entry* entry = head.next(); entry != &head;) {
      Timer::Entry* next = entry->next();
      if (entry->due_tick <= now) {
        entry->unlink();
        entry->insert_before(due);
      }
      entry = next;
    }
  }
  last_tick_ = std::max(last_tick_, now);
  // A task may cancel another one that is due, or destroy its own timer.
  while (due.is_linked()) {
    Timer::Entry& entry = *due.next();
    remove(entry);
    Task task = std::exchange(entry.task, nullptr);
    task();
  }
  if (entries_ == 0) return;
  std::uint64_t next = next_occupied_tick();
  if (armed_tick_ == 0 || next < armed_tick_) arm(next);
}

}  // namespace hive::net
