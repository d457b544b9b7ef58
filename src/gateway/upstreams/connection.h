#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "gateway/upstreams/caller.h"
#include "gateway/upstreams/upstreams.h"
#include "net/runtime/runtime.h"
#include "protocol/mcp/revision.h"

namespace hive::net::http {
class AsyncClient;
}

namespace hive::upstreams {

/// How a server is reached.
enum class TransportKind { stdio, http, sse };

/// Which era is spoken. `probe` asks for the modern one first and falls back as the specification says.
enum class EraPreference { probe, legacy, modern };

/// One session with one MCP server, as it is to be opened.
struct ConnectionOptions {
  std::string name;  ///< the upstream's, for logs and messages
  TransportKind transport = TransportKind::http;
  EraPreference era = EraPreference::probe;

  // stdio
  std::string command;                             ///< a bare word (looked up on a fixed path) or an absolute path
  std::vector<std::string> arguments;              ///
  std::map<std::string, std::string> environment;  ///< the child gets PATH, HOME, LANG and these; nothing of ours

  // http, sse
  std::string url;
  std::vector<std::pair<std::string, std::string>> headers;
  std::string auth_token;  ///< sent as "Authorization: Bearer"; never logged
  std::string ca_certificate_path;
  bool verify_tls = true;
  std::chrono::milliseconds connect_timeout = std::chrono::seconds(10);

  std::string client_info;               ///< raw Implementation object: {"name":...,"version":...}
  std::string capabilities = "{}";       ///< raw, declared at initialize; modern requests declare their own Caller's
  std::optional<std::string> log_level;  ///< asked of a legacy server that logs, right after initialize

  std::chrono::milliseconds start_timeout = std::chrono::seconds(30);  ///< until the server is ready
  std::chrono::milliseconds ping_interval = std::chrono::seconds(30);  ///< legacy sessions; 0: never
  std::chrono::milliseconds ping_timeout = std::chrono::seconds(10);
  std::size_t max_in_flight = 1024;  ///< requests beyond are refused as not_sent, reason "upstream_busy"
  /// Whether to listen for changes: the GET stream of legacy HTTP, subscriptions/listen of modern servers.
  bool listen = true;
};

/// What the server said about itself. Bounded; names are not escaped.
struct ServerInfo {
  mcp::Revision revision = mcp::Revision::v2025_11_25;
  std::string name;
  std::string version;
  std::string raw_info;      ///< the whole serverInfo object; "{}" if none
  std::string capabilities;  ///< raw object
  std::string instructions;
};

/// What the owner of a connection learns. All on the connection's worker, never from within a call of the owner, and
/// none once close() has been called.
struct ConnectionEvents {
  std::function<void(const ServerInfo&)> on_ready;
  /// The session is over, before or after it was ready; nothing follows. Called once. The error's code: not_found when
  /// the server has forgotten the session (a new one may work at once), invalid_argument when configuration must change
  /// first, permission_denied for certificates and refused credentials, otherwise unavailable, timed_out, io, corrupt.
  std::function<void(const Error&)> on_closed;
  /// notifications/tools/list_changed, notifications/resources/updated, ...; not what belongs to a request.
  std::function<void(std::string_view method, std::string_view raw_params)> on_notification;
};

/// One request of the session.
struct ConnectionRequest {
  std::string method;
  std::string params = "{}";            ///< raw object; a _meta in it is kept, our own members of _meta win
  std::shared_ptr<Caller> caller = {};  ///< null: progress, log messages and questions have nowhere to go
  std::chrono::milliseconds timeout = std::chrono::seconds(60);
  /// Modern HTTP only: further headers (Mcp-Param-*), made by the caller from the tool's schema.
  std::vector<std::pair<std::string, std::string>> headers = {};
  /// On the connection's worker, exactly once, later. Kinds: result and error as the server sent them (a modern result
  /// may be "input_required"); not_sent: the server has not seen it, so it may be sent again elsewhere; lost: the
  /// connection broke; timed_out; unconfirmed: cancelled after it was sent.
  std::move_only_function<void(Reply)> done = {};
};

/// One session with one MCP server, whatever the transport and the era. Methods may be called on any thread; they take
/// effect on the worker, in order. Ids and progress tokens on the wire are this session's own. Progress and log
/// messages go to the Caller of their request. A question of the server (elicitation, sampling, roots) goes to the
/// Caller of the request on whose stream it came, or, where all share one stream, to that of the only request in
/// flight that can be asked; otherwise the server is told that there is nobody to ask. Hostile servers are bounded in
/// the size and the number of what they send.
class Connection {
 public:
  /// Opens nothing yet. `http` may be null for stdio; when it goes before the connection, that loses its server.
  static std::unique_ptr<Connection> create(net::Worker& worker, net::Runtime& runtime, net::http::AsyncClient* http,
                                            ConnectionOptions options, ConnectionEvents events);
  /// Closes.
  virtual ~Connection() = default;

  /// Starts the child or the HTTP session and agrees on a revision; on_ready or on_closed follows.
  virtual void start() = 0;
  /// Sends a request once the server is ready (not_sent before). Returns a ticket for cancel().
  virtual std::uint64_t request(ConnectionRequest request) = 0;
  /// Tells the server that nobody waits any more; `done` follows at once with unconfirmed or not_sent.
  virtual void cancel(std::uint64_t ticket, std::string reason) = 0;
  virtual void notify(std::string method, std::string raw_params) = 0;
  /// Asks for notifications/resources/updated of exactly these URIs, in the way of the era.
  virtual void watch_resources(std::vector<std::string> uris) = 0;
  /// Ends the session in good order: DELETE, or SIGTERM and later SIGKILL to the child's group. Requests in flight are
  /// answered as lost.
  virtual void close() = 0;
  /// The child's process id; nullopt for other transports and when none runs. For status pages and tests.
  [[nodiscard]] virtual std::optional<int> process_id() const = 0;
};

}  // namespace hive::upstreams
