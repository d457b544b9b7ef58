#pragma once

#include <chrono>
#include <memory>

#include "base/result.h"
#include "base/unique_fd.h"
#include "priv/operations.h"

namespace hive::priv {

struct ServerLimits {
  size_t max_connections = 16;
  std::chrono::milliseconds request_time = std::chrono::seconds(5);  ///< for a whole request to come
  std::chrono::milliseconds answer_time = std::chrono::seconds(5);   ///< for an answer to be taken
  std::chrono::milliseconds idle_exit{0};                            ///< 0: never
};

/// Serves a listening Unix socket: one request and one answer a connection, a bounded number of connections at once.
/// A connection that breaks doesn't break off its request: what was begun is finished or taken back.
class Server {
 public:
  /// `stopping` is set when stop() is called, and ends copies that are under way.
  Server(UniqueFd listener, Desk& desk, const Settings& settings, ServerLimits limits, std::atomic<bool>& stopping);
  ~Server();

  /// Runs until stop() or until nobody has come for `idle_exit`. Returns after the last request has ended.
  Result<void> run();

  /// From another thread or a signal handler.
  void stop();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// A listening socket at `path`, in the place of a dead one; for tests, since systemd makes the real one.
Result<UniqueFd> listen_at(const std::string& path);

/// The one socket that systemd passes (sd_listen_fds), or not open if the program was not started by a socket.
Result<UniqueFd> listener_from_systemd();

}  // namespace hive::priv
