#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gateway/upstreams/caller.h"
#include "gateway/upstreams/connection.h"
#include "net/runtime/runtime.h"

/// Private to this room.
namespace hive::upstreams {

/// One connection of a server and the requests that stand on it. On the server's worker.
struct Session {
  enum class Phase { opening, ready, ended };

  std::string key;                       ///< empty: the main session; otherwise see session_key()
  std::string caller_key;                ///< Caller::key()
  std::optional<std::string> log_level;  ///< that the server was asked for
  bool is_setting_level = false;         ///< requests wait meanwhile
  Phase phase = Phase::opening;
  std::unique_ptr<Connection> connection;
  std::vector<std::uint64_t> waiting;  ///< tickets that are sent once it is ready
  std::set<std::uint64_t> in_flight;   ///< tickets
  std::uint64_t last_used = 0;         ///< of a counter
  net::Timer idle;

  [[nodiscard]] bool is_busy() const { return !waiting.empty() || !in_flight.empty(); }
};

/// The reply to a request that has no answer of the server.
inline Reply unanswered(ReplyKind kind, std::string reason, std::string detail) {
  Reply reply;
  reply.kind = kind;
  reply.reason = std::move(reason);
  reply.detail = std::move(detail);
  return reply;
}

/// What a session with a server that keeps state declares on behalf of a caller: of the caller's capabilities those
/// that the gateway passes on, as a raw object.
std::string bridged_capabilities(std::string_view raw_capabilities);

/// Whether a server that keeps state must know the caller: it can be asked something, or wants log messages.
bool needs_own_session(const Caller& caller);

/// Two callers that may share a session have one key: the same Caller::key() and the same capabilities.
std::string session_key(const Caller& caller);

}  // namespace hive::upstreams
