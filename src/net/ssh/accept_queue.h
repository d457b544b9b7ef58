#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <list>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/unique_fd.h"
#include "net/ssh/line_channel.h"

namespace hive::net::ssh {

/// Connections that wait for their handshake, fairly between their sources: each source has a queue of its own, and the
/// sources have their turn one after another. When the whole is full, the longest queue loses its newest, so that who
/// floods it loses what he added. One thread.
class AcceptQueue {
 public:
  struct Waiting {
    UniqueFd connection;
    Peer peer;
    std::string source;  ///< what counts as one, see SocketAddress
  };

  explicit AcceptQueue(std::size_t max_waiting) : max_waiting_(max_waiting) {}

  /// Takes a connection in. Returns the one that must go for it, which may be itself.
  std::optional<Waiting> push(Waiting waiting);

  /// The next one of the next source that `may_begin`; nullopt when there is none.
  std::optional<Waiting> pop(const std::function<bool(const std::string& source)>& may_begin);

  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] bool empty() const { return size_ == 0; }
  /// How many of this source wait.
  [[nodiscard]] std::size_t waiting_of(const std::string& source) const;

 private:
  struct Source {
    std::string name;
    std::deque<Waiting> waiting;
  };
  using Sources = std::list<Source>;

  Waiting take(Sources::iterator source, bool newest);

  std::size_t max_waiting_;
  std::size_t size_ = 0;
  Sources sources_;  // in the order of their turns; none is empty
  std::unordered_map<std::string, Sources::iterator> by_name_;
};

}  // namespace hive::net::ssh
