#pragma once

#include <chrono>
#include <cstddef>
#include <memory>

#include "base/clock.h"
#include "gateway/surfaces/mcp/core.h"
#include "gateway/surfaces/mcp/http_session.h"
#include "gateway/surfaces/mcp/http_sessions.h"
#include "gateway/surfaces/rest/mcp_endpoint.h"
#include "net/runtime/runtime.h"

namespace hive::mcp_surface {

struct HttpOptions {
  HttpSessions::Limits sessions = {};
  HttpSession::Options session = {};
  std::size_t max_streams_per_identity = 128;  ///< subscriptions/listen, GET /mcp and GET /sse
  std::chrono::milliseconds heartbeat = std::chrono::seconds(15);
};

/// MCP over HTTP on top of the core: Streamable HTTP of 2026-07-28 (stateless) and of 2025-03-26 to 2025-11-25 (with
/// sessions), and HTTP+SSE of 2024-11-05. Which era a request of /mcp belongs to shows in the request: modern keys in
/// params._meta or a modern MCP-Protocol-Version. Thread-safe.
class HttpEndpoint : public rest::McpEndpoint {
 public:
  /// `runtime` and `clock` must outlive it; destroy it when the runtime has stopped, or after close().
  static std::shared_ptr<HttpEndpoint> create(net::Runtime& runtime, std::shared_ptr<Core> core, const Clock& clock,
                                              HttpOptions options = {});

  /// Refuses new requests with 503, and ends the streams of those who only listen; the others end with the last answer.
  /// After Core::close(), before the funnel is drained.
  virtual void close() = 0;

  [[nodiscard]] virtual std::size_t session_count() const = 0;
};

}  // namespace hive::mcp_surface
