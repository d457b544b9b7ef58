#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "gateway/policy/principal.h"
#include "protocol/outcome.h"

namespace hive::calls {

/// Where a call came from.
enum class Surface { rest, mcp_stdio, mcp_http, mcp_sse, portal, assistant, schedule, approval, peer };
std::string_view to_string(Surface surface);

/// One call to a tool, wherever it comes from (DESIGN section 4).
struct Call {
  policy::Principal principal;
  Surface surface = Surface::rest;
  std::string request_id;
  std::string agent;
  std::string tool;              ///< without the agent's prefix
  std::string arguments = "{}";  ///< raw JSON, already validated by the surface's parser
  std::string on_behalf_of;
  bool after_untrusted_text = false;
  std::chrono::milliseconds timeout{0};  ///< 0: the gateway's default
  /// Set when the caller wants output while the tool runs; gets the raw params of notifications/progress, on the
  /// caller's worker.
  std::move_only_function<void(std::string_view)> on_progress;
};

/// How a call ended, with what the caller is to see.
struct CallResult {
  protocol::Outcome outcome = protocol::Outcome::failure;
  std::string reason;       ///< a short code: "not_allowlisted", "agent_offline", "role", ...
  bool by_gateway = false;  ///< refused or ended by the gateway itself; the reason is ours
  bool is_error = false;    ///< body is a JSON-RPC error object, otherwise a result object
  std::string body;         ///< raw JSON of the result or error object
  std::uint64_t duration_us = 0;
  std::chrono::milliseconds retry_after{0};  ///< with the reason rate_limited
};

/// Splits "agent__tool" at the first "__"; the agent is empty when there is none.
struct ToolAddress {
  std::string_view agent;
  std::string_view tool;
};
ToolAddress split_tool_name(std::string_view name);

}  // namespace hive::calls
