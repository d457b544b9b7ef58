#pragma once

#include <expected>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "protocol/json.h"
#include "protocol/mcp/revision.h"

/// JSON-RPC 2.0 messages of the Model Context Protocol, taken apart and put together. Pure values in, pure values out.
/// Raw JSON stays raw: what only passes through is never serialised again.
namespace hive::mcp {

inline constexpr int header_mismatch_code = -32020;
inline constexpr int missing_capability_code = -32021;
inline constexpr int unsupported_version_code = -32022;
inline constexpr int resource_not_found_code = -32002;  ///< up to 2025-11-25; later -32602
inline constexpr std::string_view meta_prefix = "io.modelcontextprotocol/";

inline constexpr json::Limits message_limits{.max_bytes = std::size_t{4} << 20, .max_depth = 64, .max_values = 200'000};

enum class MessageKind { request, notification, response, error_response };

/// One message. Views point into the text it was parsed from.
struct Message {
  MessageKind kind = MessageKind::request;
  std::string_view id = {};  ///< raw JSON, a string or an integer; empty for notifications and for errors without id
  std::string method = {};
  std::string_view params = {};  ///< raw JSON object; empty when absent
  std::string_view body = {};    ///< raw "result" or "error"
};

/// What is wrong with a message, as it is to be answered.
struct Fault {
  int code = -32600;
  std::string message = {};
  std::string id = {};    ///< raw JSON to echo; empty: none (an invented or null id is never sent)
  std::string data = {};  ///< raw JSON; may be empty
  unsigned http_status = 400;
};

/// Parses one message. -32700 for what is no JSON (also: too large, too deep, a byte order mark, duplicate keys),
/// -32600 for what is no message (wrong "jsonrpc", an id that is null, fractional, an object or longer than 256 bytes,
/// a method longer than 256 bytes, a result that is no object, a batch), -32602 for params that are no object.
/// An error response may have the null id that JSON-RPC 2.0 section 5 asks for; it comes out as no id.
std::expected<Message, Fault> parse_message(std::string_view text);

/// The elements of a batch (2025-03-26 alone has batches); 1 to 64 of them.
std::expected<std::vector<std::string_view>, Fault> split_batch(std::string_view text);
/// Whether a text begins as an array does; it need not be one.
bool is_batch(std::string_view text);

/// What params._meta of a request says. Raw members are views into params.
struct RequestMeta {
  std::string_view progress_token = {};  ///< raw string or integer; empty: no progress wanted
  std::optional<std::string> protocol_version = {};
  std::string_view client_capabilities = {};  ///< raw object
  std::string_view client_info = {};          ///< raw object
  std::optional<std::string> log_level = {};
  bool has_modern_keys = false;  ///< any key that only modern requests carry
};
/// -32602 for a member of the wrong type and for a log level that there is not; nothing has to be there.
std::expected<RequestMeta, Fault> parse_meta(const Message& request);
/// The same for whoever has read the members of params already.
std::expected<RequestMeta, Fault> parse_meta(const Message& request, std::span<const json::Member> params);

/// The revision of a modern request: -32602 if a key that every modern request carries is missing, -32022 with the
/// supported revisions for one that is not modern.
std::expected<Revision, Fault> modern_revision(const Message& request, const RequestMeta& meta);

/// The severity of one of the eight levels of RFC 5424 section 6.2.1, "emergency" 0 to "debug" 7, or nullopt. A message
/// is wanted if its number is at most that of the level asked for.
std::optional<unsigned> log_severity(std::string_view level);

/// Messages without final newline and without any inside, whatever the raw JSON looks like: line breaks between tokens
/// become spaces, U+2028 and U+2029 in strings escapes, the rest stays byte for byte. So a message is one line of stdio
/// and one data field of an event stream. `raw_id` is echoed as it is; an empty one is left out, as are empty params
/// and data.
std::string encode_request(std::string_view raw_id, std::string_view method, std::string_view raw_params);
std::string encode_notification(std::string_view method, std::string_view raw_params);
std::string encode_result(std::string_view raw_id, std::string_view raw_result);
std::string encode_error(std::string_view raw_id, int code, std::string_view message, std::string_view raw_data = {});
std::string encode_error_body(std::string_view raw_id, std::string_view raw_error);
std::string encode_fault(const Fault& fault);

/// A raw object with members replaced, added at the end or (empty value) removed, everything else byte for byte in its
/// order. Empty text counts as {}, and so does what is no object.
struct MemberChange {
  std::string_view key;
  std::string_view value;  ///< raw JSON; empty: remove
};
std::string with_members(std::string_view raw_object, std::span<const MemberChange> changes);

/// A key for tables of requests in flight: equal for two raw ids if type and value are, however they are written, so
/// "1" and 1 differ.
std::string id_key(std::string_view raw_id);

}  // namespace hive::mcp
