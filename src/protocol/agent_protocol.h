#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "base/result.h"
#include "protocol/json.h"
#include "protocol/outcome.h"

/// The lines between gateway and agent: JSON-RPC 2.0, one message a line (DESIGN section 5). Pure values in, pure
/// values out.
///
/// Gateway to agent:
///   {"jsonrpc":"2.0","id":"17","method":"tools/list"}
///   {"jsonrpc":"2.0","id":"18","method":"tools/call","params":{"name":"run_command","arguments":{...},
///      "_meta":{"progressToken":"18","myrmex-hive/timeout_ms":30000}}}
///   {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"18","reason":"..."}}
///   {"jsonrpc":"2.0","id":"19","method":"ping"}
/// Agent to gateway:
///   {"jsonrpc":"2.0","id":"18","result":{"content":[...],"structuredContent":{...},"isError":true,
///      "_meta":{"myrmex-hive/outcome":"denied","myrmex-hive/reason":"not_allowlisted"}}}
///   {"jsonrpc":"2.0","id":"18","error":{"code":-32602,"message":"...","data":{"outcome":"denied","reason":"..."}}}
///   {"jsonrpc":"2.0","id":"19","result":{"_meta":{"myrmex-hive/tools_sha256":"..."}}}, the answer to ping: the digest
///   of the
///      agent's tools/list result, so that a gateway that has this list from another agent need not ask for it
///   {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"18","progress":3,"message":"text"}}
namespace hive::protocol {

inline constexpr size_t default_max_line_bytes = size_t{4} << 20;
inline constexpr std::string_view ssh_subsystem = "mcp";
/// Of a channel on which an agent asks {"method":"probe"} without connecting as itself.
inline constexpr std::string_view ssh_probe_subsystem = "myrmex-probe";
inline constexpr std::string_view rejected_marker = "Command failed/rejected:";
inline constexpr std::string_view outcome_meta_key = "myrmex-hive/outcome";
inline constexpr std::string_view reason_meta_key = "myrmex-hive/reason";
inline constexpr std::string_view timeout_meta_key = "myrmex-hive/timeout_ms";
inline constexpr std::string_view tools_meta_key = "myrmex-hive/tools_sha256";

inline constexpr int parse_error_code = -32700;
inline constexpr int invalid_request_code = -32600;
inline constexpr int method_not_found_code = -32601;
inline constexpr int invalid_params_code = -32602;
inline constexpr int internal_error_code = -32603;

/// A request as an agent receives it. Views point into the line.
struct AgentRequest {
  std::string_view id;  ///< raw JSON, "null" when absent (the reference answers those as well)
  bool is_notification = false;
  std::string method;
  std::string_view params;  ///< raw JSON, empty when absent
};

/// The parameters of tools/call.
struct ToolCallParams {
  std::string name;
  std::string_view arguments;       ///< raw JSON; empty when absent, "null" when null
  std::string_view progress_token;  ///< raw JSON; empty when the caller asked for no progress
  std::optional<std::chrono::milliseconds> timeout;
};

/// Parses a line from the gateway. Failure: invalid_argument, to be answered with -32700 or -32600.
Result<AgentRequest> parse_agent_request(std::string_view line, const json::Limits& limits);
Result<ToolCallParams> parse_tool_call_params(std::string_view params);

/// A response as the gateway receives it. Views point into the line.
struct AgentResponse {
  std::string id;  ///< decoded; the gateway's own ids are strings, numbers come back as their text
  bool is_error = false;
  std::string_view body;  ///< raw JSON of "result" or "error"
};

struct AgentProgress {
  std::string token;
  std::string_view params;  ///< raw JSON of the notification's params
};

using AgentMessage = std::variant<AgentResponse, AgentProgress>;

/// Parses a line from an agent.
Result<AgentMessage> parse_agent_message(std::string_view line, const json::Limits& limits);

/// How a tool call ended, read from the raw result or error: the fields where the agent sends them, otherwise the
/// reference's text marker at the very start of the text. An agent that sends fields is never judged by its text.
struct Verdict {
  Outcome outcome = Outcome::success;
  std::string reason;  ///< a short code, empty on success
};
Verdict classify_result(std::string_view result);
Verdict classify_error(std::string_view error);

/// The digest in the result of ping, as it stands there; empty if there is none.
std::string tools_digest_of(std::string_view ping_result);

/// Lines without the final newline.
std::string encode_tools_call(std::string_view id, std::string_view tool, std::string_view raw_arguments,
                              bool wants_progress, std::chrono::milliseconds timeout);
std::string encode_request(std::string_view id, std::string_view method);
std::string encode_cancelled(std::string_view id, std::string_view reason);
std::string encode_result(std::string_view raw_id, std::string_view raw_result);
std::string encode_error(std::string_view raw_id, int code, std::string_view message, Outcome outcome,
                         std::string_view reason);
std::string encode_ping_result(std::string_view tools_digest);  ///< the raw result alone
std::string encode_progress(std::string_view raw_token, std::uint64_t progress, std::string_view message);

/// The raw "error" object alone.
std::string encode_error_object(int code, std::string_view message, Outcome outcome, std::string_view reason);

}  // namespace hive::protocol
