#pragma once

#include <chrono>
#include <functional>
#include <memory>

#include "gateway/surfaces/mcp/core.h"

namespace hive::mcp_surface {

/// MCP over two descriptors, one message a line, both eras on the one stream: a modern request is complete in itself;
/// the first other message begins the one legacy session that there is.
class StdioEndpoint {
 public:
  struct Options {
    int in_fd = 0;
    int out_fd = 1;
    /// Who the client is; asked for each message, because a new configuration may change its role.
    std::function<policy::Principal()> principal = {};
    /// Once, when the client has closed the input and got its last answers, or reads nothing any more. On the worker;
    /// must not block.
    std::function<void()> ended = {};
    std::chrono::milliseconds last_answers{1000};          ///< how long requests may still run when the input has ended
    std::size_t max_unread_bytes = std::size_t{64} << 20;  ///< for a slow client; more ends it
  };

  /// Core and worker must outlive the endpoint; the descriptors stay the caller's.
  static std::unique_ptr<StdioEndpoint> start(Core& core, net::Worker& worker, Options options);
  /// Withdraws what still runs and ends the session. While the worker runs, but not on it.
  ~StdioEndpoint();
  StdioEndpoint(const StdioEndpoint&) = delete;
  StdioEndpoint& operator=(const StdioEndpoint&) = delete;

 private:
  class Conversation;
  explicit StdioEndpoint(std::shared_ptr<Conversation> conversation);
  std::shared_ptr<Conversation> conversation_;
};

}  // namespace hive::mcp_surface
