#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "gateway/policy/principal.h"
#include "gateway/upstreams/caller.h"
#include "protocol/outcome.h"

namespace hive::calls {

/// Where a call came from.
enum class Surface { rest, mcp_stdio, mcp_http, mcp_sse, portal, assistant, schedule, approval, peer };
std::string_view to_string(Surface surface);
/// Every surface there is, so that tests and lists cannot forget one.
std::span<const Surface> all_surfaces();
std::optional<Surface> surface_from_string(std::string_view name);

/// Who is to answer a call.
enum class TargetKind {
  agent,
  upstream,  ///< an MCP server behind the gateway
};

std::string_view to_string(TargetKind target);
std::optional<TargetKind> target_kind_from_string(std::string_view name);

/// One call to a tool, wherever it comes from (DESIGN section 4).
struct Call {
  policy::Principal principal;
  Surface surface = Surface::rest;
  std::string request_id;
  TargetKind target = TargetKind::agent;
  std::string agent;             ///< or the upstream's name
  std::string tool;              ///< without the prefix; for other methods of an upstream than tools/call the method
  std::string arguments = "{}";  ///< raw JSON, already validated by the surface's parser
  /// For an upstream: the method and its raw params without _meta, which is what people approve then. Empty: tools/call
  /// with `tool` and `arguments`.
  std::string method = {};
  std::string params = {};
  std::shared_ptr<upstreams::Caller> caller = {};  ///< null: a caller that can be asked nothing
  std::string on_behalf_of;
  bool after_untrusted_text = false;
  std::string approval_id;               ///< of an approved call; the third gate holds it against what was approved
  std::chrono::milliseconds timeout{0};  ///< 0: the gateway's default
  /// How long the call may wait for an agent that is known and offline, before anything is sent or recorded as an
  /// intent; 0: not at all. Does not count into `timeout`.
  std::chrono::milliseconds wait_for_agent{0};
  /// Set when the caller wants output while the tool runs; gets the raw params of notifications/progress, on the
  /// caller's worker.
  std::move_only_function<void(std::string_view)> on_progress;
};

/// How a call ended, or that it waits for an approval, with what the caller is to see.
struct CallResult {
  /// Not empty: the call has not ended. It waits for the approval of other people under this id, and everything below
  /// but `reason` ("approval_required") and `body` (an error object that says so) means nothing.
  std::string approval_id;
  WallTime approval_expires_at;
  unsigned approvals_needed = 0;
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
