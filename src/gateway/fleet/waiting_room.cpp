#include "gateway/fleet/waiting_room.h"

#include <map>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

namespace hive::fleet {

namespace {

/// One who waits. Its timer belongs to its worker.
struct Waiter {
  std::string agent;
  net::Worker& worker;
  WaitingRoom::Done done;
  net::Timer timer;
};
using WaiterPointer = std::shared_ptr<Waiter>;

void finish(const WaiterPointer& waiter, WaitEnd end) {
  waiter->worker.post([waiter, end] {
    waiter->timer.cancel();
    std::exchange(waiter->done, nullptr)(end);
  });
}

}  // namespace

struct WaitingRoom::State : std::enable_shared_from_this<State> {
  explicit State(Limits given) : limits(given) {}

  const Limits limits;
  mutable std::mutex mutex;
  bool is_closed = false;                                                 // guarded by mutex
  std::uint64_t next_ticket = 1;                                          // guarded by mutex
  std::unordered_map<std::uint64_t, WaiterPointer> waiters;               // by ticket; guarded by mutex
  std::map<std::string, std::vector<std::uint64_t>, std::less<>> queues;  // by agent; guarded by mutex

  /// nullptr: it has ended. Whoever takes it ends it.
  WaiterPointer take(std::uint64_t ticket) {
    std::lock_guard lock(mutex);
    auto node = waiters.extract(ticket);
    if (node.empty()) return nullptr;
    auto queue = queues.find(node.mapped()->agent);
    std::erase(queue->second, ticket);
    if (queue->second.empty()) queues.erase(queue);
    return std::move(node.mapped());
  }

  void begin(const WaiterPointer& waiter, std::uint64_t ticket, std::chrono::milliseconds limit) {
    waiter->worker.dispatch([waiter, ticket, limit, weak = weak_from_this()] {
      // It may have ended before this ran.
      if (waiter->done == nullptr) return;
      waiter->timer = waiter->worker.schedule(limit, [ticket, weak] {
        auto state = weak.lock();
        WaiterPointer late = state == nullptr ? nullptr : state->take(ticket);
        if (late != nullptr) finish(late, WaitEnd::timed_out);
      });
    });
  }
};

WaitingRoom::WaitingRoom(Limits limits) : state_(std::make_shared<State>(limits)) {}

WaitingRoom::~WaitingRoom() {
  close();
}

std::uint64_t WaitingRoom::wait(std::string_view agent, net::Worker& worker, std::chrono::milliseconds limit,
                                Done done) {
  auto waiter = std::make_shared<Waiter>(std::string(agent), worker, std::move(done), net::Timer());
  std::uint64_t ticket = 0;
  bool is_closed = false;
  {
    std::lock_guard lock(state_->mutex);
    is_closed = state_->is_closed;
    auto queue = state_->queues.find(agent);
    bool is_full = state_->waiters.size() >= state_->limits.in_all ||
                   (queue != state_->queues.end() && queue->second.size() >= state_->limits.per_agent);
    if (!is_closed && !is_full) {
      ticket = state_->next_ticket++;
      state_->waiters.emplace(ticket, waiter);
      state_->queues[waiter->agent].push_back(ticket);
    }
  }
  if (ticket == 0) {
    finish(waiter, is_closed ? WaitEnd::ended : WaitEnd::full);
  } else {
    state_->begin(waiter, ticket, limit);
  }
  return ticket;
}

void WaitingRoom::stop(std::uint64_t ticket) {
  if (WaiterPointer waiter = state_->take(ticket)) finish(waiter, WaitEnd::ended);
}

void WaitingRoom::arrived(std::string_view agent) {
  std::vector<std::uint64_t> tickets;
  {
    std::lock_guard lock(state_->mutex);
    auto queue = state_->queues.find(agent);
    if (queue == state_->queues.end()) return;
    tickets = queue->second;
  }
  for (std::uint64_t ticket : tickets)
    if (WaiterPointer waiter = state_->take(ticket)) finish(waiter, WaitEnd::online);
}

void WaitingRoom::close() {
  std::vector<std::uint64_t> tickets;
  {
    std::lock_guard lock(state_->mutex);
    state_->is_closed = true;
    for (const auto& [ticket, waiter] : state_->waiters)
      tickets.push_back(ticket);
  }
  for (std::uint64_t ticket : tickets)
    stop(ticket);
}

std::size_t WaitingRoom::size() const {
  std::lock_guard lock(state_->mutex);
  return state_->waiters.size();
}

}  // namespace hive::fleet
