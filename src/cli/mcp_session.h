#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "cli/mcp_endpoint.h"
#include "net/runtime/runtime.h"
#include "protocol/mcp/message.h"

namespace hive::cli {

/// How long to pause before attempt number `attempt` (from 0): doubled each time, with jitter, up to a limit.
std::chrono::milliseconds pause_before(unsigned attempt, std::chrono::milliseconds first);

/// The session of a client that speaks a revision with initialize (up to 2025-11-25), as the gateway's HTTP endpoint
/// wants it: its id and revision in headers, one stream for what belongs to no request, and a new session when the
/// gateway does not know the old one any more. Belongs to one worker.
class McpSession {
 public:
  struct Hooks {
    std::function<void(std::string_view message)> receive;  ///< of the stream that belongs to no request
    std::function<void(std::string note)> note;
  };

  McpSession(McpEndpoint& endpoint, std::chrono::milliseconds first_pause, Hooks hooks)
      : endpoint_(endpoint), first_pause_(first_pause), hooks_(std::move(hooks)) {}

  /// The client's initialize is on its way; ends the session before.
  void begin(std::string_view raw_params);
  /// It was answered with a result, and this head.
  void opened(const net::http::ClientResponse& head, std::string_view raw_result);
  /// It was not.
  void not_opened();
  /// The client's notifications/initialized.
  void announce(std::string text);

  /// While the handshake runs, other messages have to wait: what is given here runs afterwards, in order.
  [[nodiscard]] bool is_busy() const { return state_ != State::none && state_ != State::ready; }
  void when_settled(std::function<void()> task) { waiting_.push_back(std::move(task)); }

  /// For messages within the session as it is now.
  [[nodiscard]] net::http::Headers headers() const;
  /// Counts sessions, so that a late 404 of an old one can be told from news. 0: there never was one.
  [[nodiscard]] unsigned generation() const { return generation_; }
  [[nodiscard]] bool has_batches() const { return revision_ == "2025-03-26"; }

  /// The gateway does not know the session of this generation (HTTP 404). Makes a new one, unless that was done; false
  /// when that is impossible.
  bool restore(unsigned generation);
  /// Why the last attempt to restore it failed; empty: it did not.
  [[nodiscard]] const std::string& restore_error() const { return restore_error_; }

  /// A request of the client succeeded: what a new session has to be told as well is kept.
  void remember(const mcp::Message& request);

  /// Tells the gateway that the session is over; `done` runs when it knows, or cannot be told.
  void end(std::function<void()> done);

 private:
  enum class State { none, opening, announcing, restoring, ready };

  void settle(State state);
  void send_restored();
  void repeat_settings();
  void restored(bool is_good, std::string error);
  void post(std::string text, std::function<void(const McpAnswer&)> done);
  void listen();
  void listen_later(std::chrono::milliseconds pause);
  void on_stream_end(const McpAnswer& answer, unsigned generation);
  void forget();

  McpEndpoint& endpoint_;
  std::chrono::milliseconds first_pause_;
  Hooks hooks_;
  State state_ = State::none;
  std::string initialize_params_;
  std::string revision_;
  std::string id_;
  unsigned generation_ = 0;
  std::string restore_error_;
  std::vector<std::function<void()>> waiting_;
  std::string log_level_params_;
  std::set<std::string> subscriptions_;  ///< raw params
  unsigned own_ids_ = 0;

  std::uint64_t stream_ = 0;  ///< the GET's number; 0: none
  std::string stream_position_;
  unsigned stream_failures_ = 0;
  net::Timer stream_timer_;
};

}  // namespace hive::cli
