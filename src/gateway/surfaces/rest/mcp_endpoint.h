#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "gateway/calls/call.h"
#include "gateway/policy/principal.h"
#include "net/http/message.h"

namespace hive::rest {

/// One request for the MCP surface. Its sender is known, its role is one of the route's, and its Origin and Host are
/// accepted.
struct McpRequest {
  std::shared_ptr<net::http::Request> request;
  std::shared_ptr<net::http::Responder> responder;
  policy::Principal principal;
  std::string request_id;                             ///< for the audit log
  calls::Surface surface = calls::Surface::mcp_http;  ///< mcp_sse for /sse and /message
  net::http::Headers headers;                         ///< that every answer carries
  /// Whether the credential would still be accepted now, with the same role and reach. For streams, which may last
  /// longer than it. Any thread.
  std::function<bool()> is_still_admitted;
  /// Adds to the audit log that the caller asked for what belongs to somebody else; many such records of one caller are
  /// summed up. Any thread.
  std::function<void(std::string_view reason, std::string detail)> record_refusal;
};

/// The MCP surface as its routes see it: POST, GET and DELETE of /mcp, GET of /sse, POST of /message. It answers every
/// request exactly once. Any thread.
class McpEndpoint {
 public:
  virtual ~McpEndpoint() = default;
  virtual void serve(McpRequest request) = 0;
};

}  // namespace hive::rest
