#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "gateway/fleet/agent_status.h"

namespace hive::fleet {

/// The last connections of one agent, and whether they are too many: it reconnects again and again, or two machines
/// with one key take the place from each other. Not thread-safe.
class FlapHistory {
 public:
  /// Connections older than this count no more.
  static constexpr std::chrono::minutes window{10};
  /// So many connections within the window are told from somebody who merely lost a connection or two.
  static constexpr std::size_t flapping_connections = 6;
  /// So often may an address take the place back that another one took from it, as who roams between networks may do.
  static constexpr std::size_t contested_returns = 2;
  /// News of one agent come at most this often.
  static constexpr std::chrono::minutes news_interval{1};

  /// A connection arrives; `replaces`: it takes the place of one that stands.
  void add(const std::string& address, bool replaces, SteadyTime now, WallTime wall_now);

  /// null: the agent is steady. Another object only when something has changed.
  [[nodiscard]] const std::shared_ptr<const Flapping>& flapping() const { return flapping_; }
  /// Forgets what is too old; true if the agent has become steady by that.
  bool settle(SteadyTime now);
  /// What is to be told now: nothing, or one line, at most once in the interval.
  [[nodiscard]] std::optional<std::string> take_news(SteadyTime now);

 private:
  struct Connection {
    SteadyTime at;
    std::string address;
    bool replaces = false;
  };
  void expire(SteadyTime now);
  [[nodiscard]] std::size_t count_returns() const;

  std::vector<Connection> connections_;  // oldest first, bounded
  std::shared_ptr<const Flapping> flapping_;
  std::optional<SteadyTime> told_at_;
};

}  // namespace hive::fleet
