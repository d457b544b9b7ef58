#pragma once

#include <chrono>
#include <memory>

#include "gateway/surfaces/mcp/core.h"
#include "gateway/surfaces/mcp/stream_quota.h"
#include "gateway/surfaces/rest/mcp_endpoint.h"

namespace hive::mcp_surface {

/// What the handling of a modern request needs.
struct ModernContext {
  std::shared_ptr<Core> core;
  std::shared_ptr<StreamQuota> quota;
  std::chrono::milliseconds heartbeat;
};

/// Answers a POST of MCP 2026-07-28 (Streamable HTTP): its headers are held against its body, and the answer is JSON
/// unless something precedes it. `parsed` is what the body came out as.
///
/// Accept: the specification asks clients to list application/json and text/event-stream. Absent and wildcards count as
/// both; a client that admits one alone gets that one, and no notifications with JSON alone; subscriptions/listen needs
/// text/event-stream; a client that admits neither gets 406.
void modern_post(const ModernContext& context, rest::McpRequest request,
                 const std::expected<mcp::Message, mcp::Fault>& parsed);

}  // namespace hive::mcp_surface
