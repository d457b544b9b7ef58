#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "gateway/upstreams/connection.h"
#include "gateway/upstreams/transport.h"
#include "protocol/mcp/message.h"

/// Private to this room: what a Connection does, on its worker.
namespace hive::upstreams {

/// How a request ended, with what only the session itself wants to know.
struct RequestOutcome {
  Reply reply;
  unsigned http_status = 0;  ///< of an answer that was no success; 0: none
  ErrorCode code = ErrorCode::unavailable;
};

class McpSession : public std::enable_shared_from_this<McpSession> {
 public:
  McpSession(net::Worker& worker, net::Runtime& runtime, net::http::AsyncClient* http, ConnectionOptions options,
             ConnectionEvents events);

  void start();
  void request(std::uint64_t ticket, ConnectionRequest request);
  void cancel(std::uint64_t ticket, const std::string& reason);
  void notify(const std::string& method, const std::string& raw_params);
  void watch_resources(std::vector<std::string> uris);
  void close();

  /// Any thread.
  [[nodiscard]] std::uint64_t next_ticket() { return ++last_ticket_; }
  [[nodiscard]] int process_id() const { return process_id_; }

 private:
  enum class Stage { idle, opening, agreeing, ready, closed };
  using Done = std::move_only_function<void(RequestOutcome)>;

  struct InFlight {
    std::string method;
    std::shared_ptr<Caller> caller;
    Done done;
    net::Timer deadline;
    bool is_sent = false;
  };
  /// A question of the server that a client is thinking about.
  struct Ask {
    std::string raw_id;
    std::uint64_t ticket = 0;
  };

  // mcp_session.cpp: requests and their ends
  void open_transport();
  std::uint64_t send_own(std::string_view method, std::string_view raw_params, std::chrono::milliseconds timeout,
                         std::optional<mcp::Revision> revision, Done done);
  void send_request(std::uint64_t ticket, ConnectionRequest& request);
  void transmit(std::uint64_t ticket, std::string_view raw_params, std::optional<mcp::Revision> revision,
                std::vector<std::pair<std::string, std::string>> headers);
  [[nodiscard]] std::string with_meta(std::uint64_t ticket, const InFlight& entry, std::string_view raw_params,
                                      std::optional<mcp::Revision> revision) const;
  void set_deadline(std::uint64_t ticket, std::chrono::milliseconds timeout);
  void withdraw(std::uint64_t ticket, const std::string& reason, RequestOutcome outcome);
  void finish(std::uint64_t ticket, RequestOutcome outcome);
  void shut_down();
  void fail_all(const Error& error);
  void fail(Error error);
  [[nodiscard]] bool is_modern() const { return mcp::is_modern(info_.revision); }

  // session_handshake.cpp: agreeing on a revision
  void on_open();
  void discover();
  void on_discovered(const RequestOutcome& outcome);
  void initialize();
  void on_initialized(const RequestOutcome& outcome);
  void fall_back(const std::string& because);
  bool fall_back_to_sse(const RequestOutcome& outcome);
  bool start_again_unprobed();
  void take_info(std::string_view raw_result, bool is_discovery);
  void become_ready();

  // session_messages.cpp: what the server sends
  void on_text(std::string_view text, std::uint64_t stream);
  void take_message(std::string_view text, std::uint64_t stream);
  void on_message(const mcp::Message& message, std::uint64_t stream);
  void on_answer(const mcp::Message& message);
  void on_notification(const mcp::Message& message, std::uint64_t stream);
  void on_server_request(const mcp::Message& message, std::uint64_t stream);
  void on_progress(std::string_view raw_params);
  void on_log_message(std::string_view raw_params, std::uint64_t stream);
  void answer_ask(std::uint64_t number, const Result<std::string>& answer);
  void drop_asks_of(std::uint64_t ticket);
  [[nodiscard]] std::shared_ptr<Caller> caller_for(std::uint64_t stream, std::string_view capability,
                                                   std::uint64_t& ticket) const;
  [[nodiscard]] bool takes_notification();
  void complain(std::string_view what);

  // session_listening.cpp: changes, resources, and whether the server lives
  void start_listening();
  void listen_anew();
  void on_listening_ended(std::uint64_t ticket, const RequestOutcome& outcome);
  void on_acknowledged(std::string_view raw_params, std::uint64_t stream);
  void update_watches();
  void schedule_ping();
  void ping_if_quiet();
  void ping_after_failure();
  void ping();

  net::Worker& worker_;
  net::Runtime& runtime_;
  std::optional<net::http::AsyncClientReference> http_;
  ConnectionOptions options_;
  const ConnectionEvents events_;  // never emptied, because one of them may be running
  Stage stage_ = Stage::idle;
  std::shared_ptr<Transport> transport_;
  std::uint64_t transport_generation_ = 0;
  ServerInfo info_;
  std::atomic<std::uint64_t> last_ticket_ = 0;
  std::atomic<int> process_id_ = -1;

  std::map<std::uint64_t, InFlight> in_flight_;
  std::map<std::uint64_t, Ask> asks_;
  std::uint64_t last_ask_ = 0;
  std::optional<std::string> log_level_;  // that was set at a legacy server

  net::Timer start_deadline_;
  net::Timer probe_deadline_;
  bool has_discovered_ = false;   // the probe has been answered
  bool has_initialized_ = false;  // initialize has been sent
  bool has_restarted_ = false;    // for a child that the probe has spoilt

  std::set<std::string> watched_;     // as wanted
  std::set<std::string> subscribed_;  // as a legacy server knows it
  std::set<std::uint64_t> listening_;
  bool listening_is_refused_ = false;
  int listening_attempts_ = 0;
  int listening_refusals_ = 0;
  net::Timer listening_timer_;

  std::chrono::steady_clock::time_point last_heard_;
  net::Timer ping_timer_;
  bool is_pinging_ = false;
  double notification_credit_;
  std::chrono::steady_clock::time_point notification_time_;
  std::chrono::steady_clock::time_point last_complaint_;
  std::uint64_t unlogged_complaints_ = 0;
};

}  // namespace hive::upstreams
