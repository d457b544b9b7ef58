#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "net/runtime/runtime.h"

namespace hive::fleet {

/// How waiting for an agent ended.
enum class WaitEnd {
  online,     ///< it is connected now
  timed_out,  ///< it did not come in time
  full,       ///< too many wait already; nobody waited
  ended,      ///< it was told to stop, or the gateway stops
};

/// Those who wait until an agent is back; bounded for each agent and in all. Thread-safe.
class WaitingRoom {
 public:
  struct Limits {
    std::size_t per_agent = 64;
    std::size_t in_all = 1024;
  };
  using Done = std::move_only_function<void(WaitEnd)>;

  explicit WaitingRoom(Limits limits);
  /// Ends what still waits; `done` of it runs as long as its worker does.
  ~WaitingRoom();
  WaitingRoom(const WaitingRoom&) = delete;
  WaitingRoom& operator=(const WaitingRoom&) = delete;

  /// `done` runs exactly once, on `worker`, later than this returns. Returns a ticket for stop(); 0: the room is full.
  std::uint64_t wait(std::string_view agent, net::Worker& worker, std::chrono::milliseconds limit, Done done);
  /// Harmless for a ticket whose wait has ended.
  void stop(std::uint64_t ticket);
  /// The agent is there: all who wait for it go on.
  void arrived(std::string_view agent);
  /// Nobody may wait any more.
  void close();
  [[nodiscard]] std::size_t size() const;

 private:
  struct State;
  const std::shared_ptr<State> state_;
};

}  // namespace hive::fleet
