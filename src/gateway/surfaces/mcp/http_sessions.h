#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "gateway/surfaces/mcp/http_session.h"

namespace hive::mcp_surface {

/// The legacy sessions over Streamable HTTP, by their ids. Bounded in number, and each in the time that it may lie
/// unused. Thread-safe.
class HttpSessions {
 public:
  struct Limits {
    std::size_t sessions = 4096;
    std::size_t sessions_per_owner = 256;  ///< beyond it the owner's longest unused session ends
    std::chrono::milliseconds idle_time = std::chrono::minutes(15);
    std::chrono::milliseconds replay_time = std::chrono::minutes(5);  ///< how long streams that ended are kept
  };

  HttpSessions(const Clock& clock, Limits limits) : clock_(clock), limits_(limits) {}

  /// False if there are too many and none of the owner's can go.
  bool add(std::shared_ptr<HttpSession> session);
  /// Ends the session of this owner that was unused for the longest; false if all are in use.
  bool make_room(std::string_view owner);
  /// null if there is none, or it has expired.
  std::shared_ptr<HttpSession> find(std::string_view id);
  /// Takes a session out without closing it.
  std::shared_ptr<HttpSession> remove(std::string_view id);
  /// Ends what has expired.
  void sweep();
  std::vector<std::shared_ptr<HttpSession>> all() const;
  [[nodiscard]] std::size_t size() const;

 private:
  struct Hash : std::hash<std::string_view> {
    using is_transparent = void;
  };
  using Map = std::unordered_map<std::string, std::shared_ptr<HttpSession>, Hash, std::equal_to<>>;

  /// The owner's longest unused session, or the end.
  Map::iterator longest_unused(std::string_view owner);
  [[nodiscard]] bool has_expired(const HttpSession& session) const;

  const Clock& clock_;
  const Limits limits_;
  mutable std::mutex mutex_;
  Map sessions_;  // guarded by mutex_
};

}  // namespace hive::mcp_surface
