#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "gateway/fleet/chatter_limit.h"
#include "gateway/fleet/fleet.h"
#include "gateway/fleet/tool_list_cache.h"
#include "net/ssh/line_channel.h"
#include "net/ssh/liveness.h"
#include "protocol/agent_protocol.h"

namespace hive::fleet {

/// One tunnel: writes requests, matches answers, watches whether the peer is alive. Belongs to the channel's worker,
/// except where it says thread-safe.
class AgentLink final : public net::ssh::LineChannel::Handler, public std::enable_shared_from_this<AgentLink> {
 public:
  /// What the link tells its owner, on its worker.
  struct Owner {
    std::function<void(const std::shared_ptr<AgentLink>&, const std::string& reason)> closed;
    /// What the agent says of itself, as describe() fills it in.
    std::function<void(const AgentLink& link, AgentStatus description)> described;
    std::function<void(const AgentLink& link, std::shared_ptr<const ToolList> tools)> listed;
    /// A call that came after the link had been replaced, for the link that replaced it; and its cancellation.
    std::function<void(std::uint64_t ticket, AgentRequest request)> moved;
    std::function<void(std::uint64_t ticket, std::string_view reason)> moved_cancel;
  };
  AgentLink(std::shared_ptr<net::ssh::LineChannel> channel, const Clock& clock, Fleet::Options options,
            ToolListCache& tool_lists, Owner owner);

  /// Where the link counts. Before start() and before the first call.
  void use(std::shared_ptr<AgentActivity> activity) { activity_ = std::move(activity); }
  /// Starts reading and asks the agent what it is and what it can do.
  void start(std::uint64_t first_ticket);
  void send(std::uint64_t ticket, AgentRequest request);
  void cancel(std::uint64_t ticket, std::string_view reason);
  /// Takes no new calls, finishes those in flight, then closes for `reason`. A peer that is silent meanwhile is given
  /// up after one keepalive period: it has most likely lost this connection.
  void drain(std::string_view reason);
  /// Takes no new calls, and closes at once.
  void close(std::string_view reason);

  /// Thread-safe.
  [[nodiscard]] net::Worker& worker() { return channel_->worker(); }
  [[nodiscard]] const std::string& id() const { return id_; }
  [[nodiscard]] const net::ssh::Peer& peer() const { return peer_; }

  /// Tickets that one link uses for its own questions.
  static constexpr std::uint64_t own_tickets = 3;

 private:
  struct Pending {
    std::move_only_function<void(std::string_view)> on_progress;
    std::move_only_function<void(AgentReply)> done;
    net::Timer timer;
    std::uint64_t line_end = 0;  // where its line ends among all bytes that were queued
    bool cancelling = false;
  };

  void on_line(std::string_view line) override;
  void on_closed(const Error& reason) override;
  /// False for what nobody waits for.
  [[nodiscard]] bool on_response(const protocol::AgentResponse& response);
  [[nodiscard]] bool on_progress(const protocol::AgentProgress& progress);
  void on_malformed(const Error& error);
  void on_deadline(std::uint64_t ticket);
  void finish(std::uint64_t ticket, AgentReply reply);
  [[nodiscard]] Result<void> queue(std::string_view line);
  Pending* ask(std::uint64_t ticket, std::string_view line, std::move_only_function<void(AgentReply)> done);
  void take_ping(const AgentReply& reply);
  void take_first_ping(const AgentReply& reply);
  void take_tools(const AgentReply& reply);
  void take_system_info(const AgentReply& reply);
  void watch();
  void watch_later(SteadyTime::duration delay);
  void ping();
  void send_ping(std::move_only_function<void(AgentReply)> done);
  void close_if_drained();

  std::shared_ptr<net::ssh::LineChannel> channel_;
  const Clock& clock_;
  const Fleet::Options options_;
  ToolListCache& tool_lists_;
  Owner owner_;
  const std::string id_;
  const net::ssh::Peer peer_;

  std::unordered_map<std::uint64_t, Pending> pending_;
  net::Timer watch_timer_;
  std::uint64_t ping_ticket_ = 0;
  net::ssh::Liveness liveness_;
  std::uint64_t queued_total_ = 0;  // bytes of lines that were ever given to the channel
  unsigned malformed_lines_ = 0;
  ChatterLimit chatter_;
  bool bounds_its_commands_ = false;  // it answers ping, so it is ours and its entries' deadlines hold
  bool closed_ = false;
  bool closing_ = false;
  std::optional<std::string> drain_reason_;
  std::vector<std::uint64_t> moved_tickets_;

  std::uint32_t calls_in_flight_ = 0;
  std::shared_ptr<AgentActivity> activity_;  // of the agent, shared by its sessions
};

}  // namespace hive::fleet
