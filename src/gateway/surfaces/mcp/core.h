#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"
#include "config/gateway_config.h"
#include "gateway/audit/log.h"
#include "gateway/audit/reader.h"
#include "gateway/calls/approvals.h"
#include "gateway/calls/fan_out.h"
#include "gateway/calls/funnel.h"
#include "gateway/fleet/fleet.h"
#include "gateway/policy/policy.h"
#include "gateway/upstreams/upstreams.h"
#include "protocol/mcp/message.h"
#include "protocol/mcp/revision.h"

/// The fleet and the upstream servers as one MCP server, apart from how its messages travel.
namespace hive::mcp_surface {

/// What the surface stands on; all of it must outlive the core.
struct Dependencies {
  net::Runtime& runtime;
  fleet::Fleet& fleet;
  calls::Funnel& funnel;
  calls::FanOuts& fan_outs;
  const Clock& clock;
  upstreams::Upstreams* upstreams = nullptr;
  calls::Approvals* approvals = nullptr;
  audit::Log* log = nullptr;
  std::function<Result<audit::Page>(const audit::Query&)> read_audit = {};  ///< blocks; for the blocking pool
};

/// Who sends a request, and over what.
struct Client {
  policy::Principal principal;
  calls::Surface surface = calls::Surface::mcp_http;
  std::string request_id;  ///< for the audit log
};

/// Where the messages of one request go; made by a transport. Any thread; must not block. Nothing is sent after
/// finish().
class Reply {
 public:
  virtual ~Reply() = default;
  /// A notification, or (legacy only) a request of ours, that belongs to this request.
  virtual void send(std::string message) = 0;
  /// The answer. Statuses other than 200 count for modern HTTP only.
  virtual void finish(std::string message, unsigned http_status) = 0;
  /// Closes the stream without an answer; a legacy client may resume it and gets the answer then. Transports without
  /// streams ignore it.
  virtual void interrupt() {}
};

/// A request that is on its way.
class Running {
 public:
  virtual ~Running() = default;
  /// The client has withdrawn it or has gone: nothing more is sent for it. Thread-safe.
  virtual void cancel(std::string_view reason) = 0;
};

/// A legacy client between initialize and its end: what it declared, its requests in flight, what it was asked. The
/// transport owns it and feeds it every message of the client. Thread-safe.
class Session {
 public:
  virtual ~Session() = default;
  [[nodiscard]] virtual const std::string& id() const = 0;  ///< 32 hexadecimal digits at random, for Mcp-Session-Id
  /// Whose session it is: messages of another identity are refused by the transport.
  [[nodiscard]] virtual const std::string& owner() const = 0;
  /// After initialize was answered; before, the newest legacy revision.
  [[nodiscard]] virtual mcp::Revision revision() const = 0;
  [[nodiscard]] virtual bool is_initialized() const = 0;

  /// A request of the client; `text` is one message. null if it was answered at once.
  virtual std::shared_ptr<Running> request(net::Worker& worker, Client client, std::string text,
                                           std::shared_ptr<Reply> reply) = 0;
  /// A notification or a response of the client.
  virtual void accept(const Client& client, std::string text) = 0;
  /// Where messages go that belong to no request: list_changed, resource updates. null: nowhere; then the latest of
  /// each kind waits.
  virtual void set_unsolicited(std::function<void(std::string message)> sink) = 0;
  /// The client has gone for good.
  virtual void close() = 0;
};

class Core {
 public:
  static std::shared_ptr<Core> create(Dependencies dependencies, std::shared_ptr<const config::GatewayConfig> config);
  virtual ~Core() = default;

  virtual void apply(std::shared_ptr<const config::GatewayConfig> config) = 0;
  /// An agent has come or gone, or has other tools. Cheap; what follows is gathered over a short window.
  virtual void fleet_changed() = 0;

  /// A modern request (2026-07-28): complete in itself. Headers were checked by the transport.
  virtual std::shared_ptr<Running> request(net::Worker& worker, Client client, std::string text,
                                           std::shared_ptr<Reply> reply) = 0;

  /// A legacy client begins; its first request must be initialize (or ping). null: there are too many, in all or of
  /// this identity, or the gateway is stopping.
  virtual std::shared_ptr<Session> open_session(const Client& client) = 0;

  /// The raw input schema of a tool by its public name, as far as the caller may see it, if it may ask for Mcp-Param
  /// headers.
  [[nodiscard]] virtual std::optional<std::string> mirroring_schema(const policy::Principal& principal,
                                                                    std::string_view tool) const = 0;

  /// Ends subscriptions gracefully and refuses new requests. Before the gateway drains.
  virtual void close() = 0;
};

}  // namespace hive::mcp_surface
