#pragma once

#include <memory>

#include "base/result.h"
#include "config/gateway_config.h"
#include "event_recorder.h"
#include "gateway/store/database.h"
#include "gateway/surfaces/mcp/core.h"
#include "gateway/surfaces/mcp/http_endpoint.h"
#include "gateway/upstreams/upstreams.h"

namespace hive::gateway {

/// The MCP side of the gateway: the servers behind it, and the core that offers them and the fleet as one server.
class McpSide {
 public:
  /// Nothing is started or asked before apply(). What is given must outlive it.
  static Result<std::unique_ptr<McpSide>> create(net::Runtime& runtime, const Clock& clock, store::Database& database,
                                                 EventRecorder& events);

  [[nodiscard]] upstreams::Upstreams& upstreams() { return *upstreams_; }
  /// null before make_core().
  [[nodiscard]] const std::shared_ptr<mcp_surface::Core>& core() const { return core_; }
  [[nodiscard]] rest::McpEndpoint* http() const { return http_.get(); }

  /// The core stands on the funnel, which must know the upstreams by then.
  void make_core(mcp_surface::Dependencies dependencies, std::shared_ptr<const config::GatewayConfig> config);

  /// Starts and ends upstreams as the configuration says.
  void apply(std::shared_ptr<const config::GatewayConfig> config);
  /// Agents came or went. Any thread.
  void fleet_changed();

  /// Takes no new requests and ends what only listens. Before the funnel is drained.
  void close_core();
  /// Ends the connections and processes of the upstreams. When the funnel is drained.
  void close_upstreams() { upstreams_->close(); }

 private:
  explicit McpSide(std::unique_ptr<upstreams::Upstreams> upstreams) : upstreams_(std::move(upstreams)) {}

  std::unique_ptr<upstreams::Upstreams> upstreams_;
  std::shared_ptr<mcp_surface::Core> core_;
  std::shared_ptr<mcp_surface::HttpEndpoint> http_;
};

}  // namespace hive::gateway
