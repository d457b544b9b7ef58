#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "agent/read_pool.h"
#include "config/agent_config.h"
#include "exec/allowlist.h"
#include "exec/runner.h"
#include "net/runtime/runtime.h"
#include "protocol/outcome.h"

namespace hive::agent {

class MetricsSampler;

/// What a tool says when it is done.
struct ToolReply {
  std::string text;        ///< the one content block; for error_code != 0 the message of the JSON-RPC error
  std::string structured;  ///< raw JSON object of structuredContent; empty for none
  protocol::Outcome outcome = protocol::Outcome::success;
  std::string reason;  ///< short code for the audit log; empty on success
  int error_code = 0;  ///< not 0: answered as a JSON-RPC error, as the reference does for unusable arguments
};

/// One call as a tool sees it. `reply` is called exactly once, on the worker, at once or later.
struct ToolCall {
  std::string arguments;                             ///< raw JSON; empty when absent
  std::optional<std::chrono::milliseconds> timeout;  ///< the caller's deadline, counted from now
  exec::OutputCallback progress;                     ///< empty when the caller asked for none
  std::move_only_function<void(ToolReply)> reply;
};

/// What tools work with. Lives longer than every call.
struct ToolServices {
  net::Runtime& runtime;
  net::Worker& worker;
  const config::AgentConfig& config;
  const exec::Allowlist& allowlist;
  exec::Runner& runner;
  MetricsSampler& metrics;
  ReadPool& reads;
};

/// Ends a call early; the reply follows as usual. Empty when the tool has replied already.
using CancelHook = std::move_only_function<void()>;

/// Runs a tool. On the worker; must not block.
using ToolHandler = CancelHook (*)(ToolServices& services, ToolCall call);

/// The handler of a built-in tool, or nullptr.
ToolHandler find_tool_handler(std::string_view name);

/// Nothing ran because the arguments are unusable: JSON-RPC error -32602.
ToolReply invalid_arguments(std::string message);
/// Nothing ran because a rule says no; a result whose text starts with the reference's marker.
ToolReply denied(std::string_view reason, std::string_view text, std::string_view output = {});
/// It ran, or should have run, and went wrong.
ToolReply failed(std::string_view reason, std::string_view text, std::string_view output = {});
ToolReply cancelled(std::string_view text, std::string_view output = {});

/// The raw JSON of a tools/call result.
std::string encode_tool_result(const ToolReply& reply);

/// The whole answer of a call, a line for the tunnel. A line that is too long would end the tunnel and with it all
/// other calls, so a reply that does not fit becomes the failure result_too_large.
std::string encode_answer(std::string_view raw_id, const ToolReply& reply);

/// Runs `work` in the pool for reads and replies with what it returns, but not later than the call's deadline or its
/// cancellation; work that is still busy then is let go, and work that has not begun is dropped. Denied as busy when
/// too much of it has not returned.
CancelHook run_in_pool(ToolServices& services, ToolCall call, std::move_only_function<ToolReply()> work);

}  // namespace hive::agent
