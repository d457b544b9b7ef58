#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/clock.h"
#include "gateway/fleet/agent_status.h"
#include "gateway/fleet/flap_history.h"
#include "net/ssh/line_channel.h"

namespace hive::fleet {

/// What is known of every agent: those that are connected, those that were, and those whose key is known. A change
/// costs the same however many agents there are; the snapshot is made when somebody asks for it after a change, which
/// copies pointers alone. Thread-safe; calls nobody.
class Roster {
 public:
  explicit Roster(const Clock& clock) : clock_(clock) {}

  /// Takes what an earlier run of the gateway knew. Before the first connection.
  void load(std::vector<AgentStatus> agents);

  /// What follows from a connection.
  struct Arrival {
    std::shared_ptr<AgentActivity> activity;  ///< of the agent, for its session
    std::optional<std::string> news;          ///< it flaps, and that is to be told now
    bool contested = false;
  };
  Arrival connected(const net::ssh::Peer& peer, bool replaces);
  void disconnected(std::string_view agent, const std::string& reason);
  /// What the agent says of itself; the members that `describe()` fills count.
  void described(std::string_view agent, AgentStatus description);
  void listed(std::string_view agent, std::shared_ptr<const ToolList> tools);

  /// Which ids have a key, each once. Agents that have none any more are marked, those that never connected go; ids
  /// that are new here are listed as never connected.
  void set_enrolled(std::span<const std::string> ids);
  /// Forgets an agent that is not online; one that is, as soon as it goes.
  void forget(std::string_view agent);
  /// Looks at what time has changed: flapping that is over, and agents that have been offline without a key for
  /// `keyless_for`.
  void settle(std::chrono::seconds keyless_for);

  [[nodiscard]] SnapshotPointer snapshot() const;
  /// null: no such agent is known.
  [[nodiscard]] AgentPointer find(std::string_view agent) const;

  /// What must be written down since the last time.
  struct Changes {
    std::vector<AgentPointer> changed;
    std::vector<std::string> forgotten;
    [[nodiscard]] bool empty() const { return changed.empty() && forgotten.empty(); }
  };
  [[nodiscard]] Changes take_changes();
  /// The changes could not be written: they come again with the next ones.
  void put_back(const Changes& changes);

 private:
  struct StringHash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };
  struct Entry {
    std::shared_ptr<AgentActivity> activity;  // null: none in this run
    FlapHistory flaps;
    bool is_to_be_forgotten = false;
  };
  template <class T>
  using ById = std::unordered_map<std::string, T, StringHash, std::equal_to<>>;

  // All with mutex_.
  [[nodiscard]] AgentPointer* slot(std::string_view agent);
  void put(AgentStatus status, bool is_to_be_written);
  void erase(std::string_view agent);
  void change(std::string_view agent, const std::function<void(AgentStatus&)>& how);

  const Clock& clock_;
  mutable std::mutex mutex_;
  std::vector<AgentPointer> agents_;              // sorted by id; guarded by mutex_
  ById<Entry> entries_;                           // of those seen in this run; guarded by mutex_
  std::unordered_set<std::string> flapping_;      // guarded by mutex_
  std::unordered_set<std::string> keyless_;       // guarded by mutex_
  std::set<std::string, std::less<>> unwritten_;  // changed or gone since the last writing; guarded by mutex_
  std::uint64_t version_ = 1;                     // guarded by mutex_
  mutable SnapshotPointer snapshot_;              // of the version that it has; guarded by mutex_
};

}  // namespace hive::fleet
