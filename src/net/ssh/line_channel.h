#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "net/runtime/runtime.h"
#include "net/ssh/traffic.h"

namespace hive::net::ssh {

/// What an agent has opened its channel for, and how (DESIGN section 5).
enum class ChannelKind {
  subsystem,  ///< its tunnel, as a subsystem
  direct,     ///< its tunnel, as a channel of that type
  probe,      ///< a question of its doctor, which must not become its tunnel
};

/// Who is at the other end of a channel.
struct Peer {
  std::string address;  ///< IP address, IPv4-mapped IPv6 written as IPv4
  std::uint16_t port = 0;
  std::string user;             ///< on the gateway: the authenticated user name
  std::string key_fingerprint;  ///< on the gateway: the agent's key; on the agent: the gateway's host key
  std::string software;         ///< the peer's SSH version string, escaped
  ChannelKind kind = ChannelKind::subsystem;
};

/// One authenticated SSH channel that carries lines. Belongs to one worker: every function and every callback runs
/// there, except where it says thread-safe. Writing is batched: one flush a loop turn.
class LineChannel : public std::enable_shared_from_this<LineChannel> {
 public:
  /// Receives what the channel brings.
  class Handler {
   public:
    virtual ~Handler() = default;
    /// One line without its newline; the view is valid during the call.
    virtual void on_line(std::string_view line) = 0;
    /// The queue fell below half of its limit after send() had refused.
    virtual void on_writable() {}
    /// Called exactly once; nothing is called afterwards.
    virtual void on_closed(const Error& reason) = 0;
  };

  virtual ~LineChannel() = default;

  [[nodiscard]] virtual Worker& worker() = 0;
  [[nodiscard]] virtual const Peer& peer() const = 0;
  /// Lines that arrive before a handler is set wait. The channel keeps the handler until on_closed() has returned; a
  /// handler that owns its channel is freed then.
  virtual void set_handler(std::shared_ptr<Handler> handler) = 0;
  /// Queues `line` and a newline. Fails with resource_exhausted when the queue is full (the line is not queued) and
  /// with unavailable when the channel is closed.
  virtual Result<void> send(std::string_view line) = 0;
  [[nodiscard]] virtual size_t queued_bytes() const = 0;
  /// How far the connection has come; see Liveness.
  [[nodiscard]] virtual Traffic traffic() const = 0;
  /// Asks the peer's SSH for an answer, which counts as traffic: every SSH must answer, also one that sends no pings.
  /// At most one question is under way; asking again before the answer asks nothing. Nothing is called from within.
  virtual void probe() = 0;
  /// Stops or resumes reading: the peer's window closes and it has to wait. No line is delivered while stopped, also
  /// not the rest of a batch; at most about 2.5 MiB of what the peer sends meanwhile is kept, 5.5 MiB of
  /// one that has sent much.
  virtual void set_reading(bool enabled) = 0;
  /// Sends what is queued as far as that is possible at once, then ends the connection; the peer is told the reason. No
  /// line is delivered any more; on_closed follows, never from within this call.
  virtual void close(std::string_view reason) = 0;
  [[nodiscard]] virtual bool is_open() const = 0;
};

}  // namespace hive::net::ssh
