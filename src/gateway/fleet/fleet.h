#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "gateway/fleet/agent_status.h"
#include "gateway/fleet/waiting_room.h"
#include "net/runtime/runtime.h"
#include "net/ssh/line_channel.h"

namespace hive::calls {
class FunnelAccess;
}

namespace hive::fleet {

class Roster;

/// How a request to an agent ended.
enum class ReplyKind {
  result,       ///< the agent answered
  error,        ///< the agent answered with a JSON-RPC error
  not_sent,     ///< the agent is offline or its queue is full: nothing ran
  lost,         ///< sent, and the tunnel broke before the answer
  timed_out,    ///< sent, and no answer before the deadline
  unconfirmed,  ///< sent and withdrawn, and the agent did not say that it stopped
};

struct AgentReply {
  ReplyKind kind = ReplyKind::not_sent;
  std::string body;    ///< raw JSON of result or error
  std::string reason;  ///< a short code where there is no body
  std::string detail;  ///< one line for people where there is no body
};

/// A tool call on its way to an agent.
struct AgentRequest {
  std::string tool;
  std::string arguments;     ///< raw JSON
  std::string required_key;  ///< not empty: only to an agent that is connected by the key with this fingerprint
  std::chrono::milliseconds timeout{0};                         ///< 0: the agent's own deadlines
  std::move_only_function<void(std::string_view)> on_progress;  ///< on the tunnel's worker
  std::move_only_function<void(AgentReply)> done;               ///< on any thread, exactly once
};

/// The tunnels and who is online. Thread-safe.
class Fleet {
 public:
  struct Events {
    std::function<void(const std::string& agent, const net::ssh::Peer& peer)> online;
    std::function<void(const std::string& agent, const std::string& reason)> offline;
    /// Connections of one id from different addresses replace each other again and again, as when one key is used on
    /// two machines; told at most once a minute and id.
    std::function<void(const std::string& agent, const std::string& detail)> contested = {};
    /// One id connects again and again without that; told as rarely.
    std::function<void(const std::string& agent, const std::string& detail)> flapping = {};
    /// An agent has said which tools it has.
    std::function<void(const std::string& agent)> listed = {};
    /// Whether a peer may be registered now: its key may have been revoked since it authenticated. Asked before and
    /// after a link is registered; must be quick. Empty: everybody.
    std::function<Result<void>(const net::ssh::Peer& peer)> admit = {};
  };
  struct Options {
    std::chrono::milliseconds keepalive = std::chrono::seconds(15);
    std::size_t max_calls_in_flight_per_agent = 1024;
    std::size_t max_tools_per_agent = 256;
    std::chrono::milliseconds default_call_time =
        std::chrono::seconds(35);  ///< for agents without deadlines of their own
    std::chrono::milliseconds max_call_time = std::chrono::hours(1);
    WaitingRoom::Limits waiting = {};
  };

  /// `roster` is what is known of the agents, and must outlive the fleet; null: the fleet starts with nothing known.
  static std::unique_ptr<Fleet> create(const Clock& clock, Options options, Events events, Roster* roster = nullptr);
  virtual ~Fleet() = default;

  /// Registers an authenticated channel under its user name. The newest connection of an id replaces the old one, which
  /// gets no new calls, finishes those it has, and closes then.
  virtual void add(std::shared_ptr<net::ssh::LineChannel> channel) = 0;

  /// Every agent that is known, online or not; asks nobody.
  [[nodiscard]] virtual SnapshotPointer snapshot() const = 0;
  /// null: no such agent is known.
  [[nodiscard]] virtual AgentPointer find(std::string_view agent) const = 0;

  /// Tells when an agent is online: `done` runs exactly once, on `worker`, later than this returns. One that is online
  /// already is told so at once. Returns a ticket for stop_waiting(), 0 where nobody waits.
  virtual std::uint64_t wait_online(std::string_view agent, net::Worker& worker, std::chrono::milliseconds limit,
                                    WaitingRoom::Done done) = 0;
  virtual void stop_waiting(std::uint64_t ticket) = 0;

  /// Which ids have a key, each once, after authorized_keys was read.
  virtual void set_enrolled(std::span<const std::string> agents) = 0;
  /// Forgets what is known of an agent, as soon as it is not online.
  virtual void forget(std::string_view agent) = 0;
  /// Ends the sessions of an agent.
  virtual void disconnect(std::string_view agent, std::string_view reason) = 0;
  /// Ends every session, replaced ones too, whose peer `may_stay` does not admit; returns how many.
  virtual std::size_t disconnect_unless(const std::function<bool(const net::ssh::Peer& peer)>& may_stay,
                                        std::string_view reason) = 0;
  /// Ends all sessions.
  virtual void close(std::string_view reason) = 0;

 private:
  friend class calls::FunnelAccess;

  /// Only the funnel may reach an agent (DESIGN section 2). Returns a ticket for cancel().
  virtual std::uint64_t send(std::string_view agent, AgentRequest request) = 0;
  virtual void cancel(std::string_view agent, std::uint64_t ticket, std::string reason) = 0;
};

}  // namespace hive::fleet
