#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "config/gateway_config.h"
#include "gateway/store/database.h"
#include "gateway/upstreams/caller.h"
#include "net/runtime/runtime.h"

namespace hive::calls {
class FunnelAccess;
}

namespace hive::upstreams {

/// What is known of one upstream server.
struct UpstreamStatus {
  std::string name;
  std::string prefix;
  std::string transport;  ///< "stdio", "http", "sse"
  std::string url;        ///< without query and user; for stdio the command and its arguments
  std::string state;      ///< "connecting", "connected", "disconnected", "disabled", "error: REASON"
  WallTime since;
  std::string revision;     ///< of the protocol, once it is known
  std::string server_name;  ///< as the server calls itself, bounded
  std::string server_version;
  std::size_t tools = 0;
  std::size_t held_back = 0;  ///< tools that wait until an admin accepts their description
  std::uint64_t restarts = 0;
  std::size_t calls_in_flight = 0;
  std::size_t sessions = 0;
  std::vector<std::string> notes;  ///< what it lists and is not offered, and why; at most a few lines
};

/// One tool, prompt, resource or resource template of an upstream.
struct Item {
  std::string upstream;
  std::string name;         ///< the upstream's own name; of a resource its URI, of a template its URI template
  std::string public_name;  ///< for clients; of resources the same as name
  std::string raw;          ///< the whole object as the upstream described it
};

/// Everything that the upstreams offer now; immutable.
struct Listing {
  std::vector<Item> tools;  ///< without those that are held back
  std::vector<Item> prompts;
  std::vector<Item> resources;
  std::vector<Item> templates;
  /// What the upstreams together can do: "logging", "completions", "resources.subscribe", ...
  std::vector<std::string> capabilities;
};

/// A tool whose description is not the one that was accepted.
struct HeldBackTool {
  std::string upstream;
  std::string tool;
  std::string accepted_sha256;  ///< empty: never accepted
  std::string current_sha256;
  std::string accepted_raw;
  std::string current_raw;
};

enum class ReplyKind { result, error, not_sent, lost, timed_out, unconfirmed };

struct Reply {
  ReplyKind kind = ReplyKind::not_sent;
  std::string body;    ///< raw JSON of result or error
  std::string reason;  ///< a short code where there is no body: "upstream_offline", "upstream_unknown", "lost", ...
  std::string detail;  ///< one line for people where there is no body
};

/// A request on its way to an upstream.
struct Request {
  std::string method;                         ///< "tools/call", "resources/read", "prompts/get", "completion/complete"
  std::string params;                         ///< raw object, with the upstream's own names, without _meta
  std::shared_ptr<Caller> caller;             ///< null: a caller that can be asked nothing
  std::chrono::milliseconds timeout{0};       ///< 0: the upstream's default (call_timeout_seconds)
  std::move_only_function<void(Reply)> done;  ///< any thread, exactly once
};

/// What changed, for those who listen.
struct Change {
  bool tools = false;
  bool prompts = false;
  bool resources = false;
  std::string updated_resource;  ///< a URI that somebody subscribed to
};

/// The MCP servers behind the gateway: their processes and connections, what they offer, and the way to them.
/// Thread-safe.
class Upstreams {
 public:
  struct Dependencies {
    net::Runtime& runtime;
    const Clock& clock;
    store::Database& database;  ///< accepted descriptions
    /// For the audit log: "upstream_connected", "upstream_lost", "tool_held_back", ...; upstream, action, detail.
    std::function<void(const std::string& upstream, const std::string& action, const std::string& detail)> event = {};
  };

  static Result<std::unique_ptr<Upstreams>> create(Dependencies dependencies);
  virtual ~Upstreams() = default;

  /// Starts what is new, ends what is gone, restarts what is configured otherwise, leaves the rest alone.
  virtual void apply(const config::GatewayConfig& config) = 0;

  [[nodiscard]] virtual std::vector<UpstreamStatus> statuses() const = 0;
  [[nodiscard]] virtual std::shared_ptr<const Listing> listing() const = 0;
  /// The tool, prompt or resource that clients know by a name; nullopt if nobody offers it. A URI that matches a
  /// template is found as well.
  [[nodiscard]] virtual std::optional<Item> find_tool(std::string_view public_name) const = 0;
  [[nodiscard]] virtual std::optional<Item> find_prompt(std::string_view public_name) const = 0;
  [[nodiscard]] virtual std::optional<Item> find_resource(std::string_view uri) const = 0;
  [[nodiscard]] virtual bool has(std::string_view upstream) const = 0;

  [[nodiscard]] virtual std::vector<HeldBackTool> held_back() const = 0;
  /// Accepts the description whose digest the admin has seen. `done` on the store's thread.
  virtual void accept(std::string upstream, std::string tool, std::string sha256,
                      std::move_only_function<void(Result<void>)> done) = 0;

  /// Tells `listener` of changes, gathered over a short window, until the returned handle is dropped. Any thread.
  using Listener = std::function<void(const Change&)>;
  [[nodiscard]] virtual std::shared_ptr<void> listen(Listener listener) = 0;
  /// Asks for notifications about a resource as long as the handle lives; null if no upstream has it or can do it.
  [[nodiscard]] virtual std::shared_ptr<void> watch_resource(std::string_view uri) = 0;
  /// The client with this key has gone: its sessions at upstreams are ended.
  virtual void forget_caller(std::string_view key) = 0;

  /// Ends all connections and children within a few seconds.
  virtual void close() = 0;

 private:
  friend class calls::FunnelAccess;

  /// Only the funnel may reach an upstream (DESIGN section 2). Returns a ticket for cancel().
  virtual std::uint64_t send(std::string_view upstream, Request request) = 0;
  virtual void cancel(std::uint64_t ticket, std::string reason) = 0;
};

}  // namespace hive::upstreams
