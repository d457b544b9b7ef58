#include "net/runtime/watchdog.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "base/log.h"

namespace hive::net {

namespace {

// Of the limit. One question that is answered late still leaves room for the next.
constexpr int rounds_per_limit = 4;
constexpr std::chrono::microseconds shortest_round = std::chrono::milliseconds(5);
constexpr std::chrono::microseconds longest_round = std::chrono::seconds(15);

std::chrono::microseconds round_of(std::chrono::microseconds limit) {
  if (limit.count() == 0) return longest_round;
  return std::clamp(limit / rounds_per_limit, shortest_round, longest_round);
}

}  // namespace

struct Watchdog::State {
  State(const ServiceManager& used_manager, std::vector<Worker*> used_workers, std::function<std::string()> used_status)
      : manager(used_manager),
        workers(std::move(used_workers)),
        status(std::move(used_status)),
        round(round_of(manager.watchdog_limit())),
        feeds(manager.watchdog_limit().count() > 0) {}

  void run() {
    std::unique_lock lock(mutex);
    while (!ended) {
      if (!feeds || !asking) {
        if (feeds) manager.feed_watchdog();
      } else if (waiting->load() == 0) {
        if (std::exchange(told, false)) log::info("the event loops turn again");
        manager.feed_watchdog();
        ask();
      } else if (!std::exchange(told, true)) {
        log::error("an event loop does not turn; the service manager's watchdog is not fed",
                   {{"loops", waiting->load()}, {"limit_ms", manager.watchdog_limit().count() / 1000}});
      }
      if (status && asking) tell_status();
      changed.wait_for(lock, round, [this] { return ended; });
    }
  }

  void ask() {
    // Shared with tasks that a loop which never turns again keeps for ever.
    waiting = std::make_shared<std::atomic<std::size_t>>(workers.size());
    for (Worker* worker : workers)
      worker->post([waiting = waiting] { waiting->fetch_sub(1); });
  }

  void tell_status() {
    std::string text = status();
    if (text == last_status) return;
    if (manager.status(text)) last_status = std::move(text);
  }

  const ServiceManager& manager;
  const std::vector<Worker*> workers;
  const std::function<std::string()> status;
  const std::chrono::microseconds round;
  const bool feeds;
  std::shared_ptr<std::atomic<std::size_t>> waiting = std::make_shared<std::atomic<std::size_t>>(0);
  bool told = false;
  std::string last_status;
  std::mutex mutex;
  std::condition_variable changed;
  bool asking = true;  // guarded by mutex, as is the next
  bool ended = false;
  std::thread thread;
};

Watchdog::Watchdog(const ServiceManager& manager, std::vector<Worker*> workers, std::function<std::string()> status) {
  if (!manager.listens()) return;
  state_ = std::make_unique<State>(manager, std::move(workers), std::move(status));
  state_->thread = std::thread([state = state_.get()] { state->run(); });
}

Watchdog::~Watchdog() {
  if (state_ == nullptr) return;
  {
    std::lock_guard lock(state_->mutex);
    state_->ended = true;
  }
  state_->changed.notify_all();
  state_->thread.join();
}

void Watchdog::stop_asking() {
  if (state_ == nullptr) return;
  std::lock_guard lock(state_->mutex);
  state_->asking = false;
}

}  // namespace hive::net
