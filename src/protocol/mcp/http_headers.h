#pragma once

#include <expected>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "protocol/mcp/message.h"

namespace hive::mcp {

/// Looks a header up by its lower-case name; nullopt when it is absent or repeated.
using HeaderLookup = std::function<std::optional<std::string_view>(std::string_view)>;

/// The value of Mcp-Name or Mcp-Param-*: plain, or "=?base64?...?=" decoded (MCP 2026-07-28, Value Encoding).
std::optional<std::string> decode_header_value(std::string_view value);
std::string encode_header_value(std::string_view value);

/// Holds the headers of a modern request against its body: MCP-Protocol-Version, Mcp-Method, Mcp-Name. -32020 with
/// status 400 otherwise.
std::expected<void, Fault> check_headers(const HeaderLookup& headers, const Message& request, const RequestMeta& meta);

/// The same for the parameters that the tool's input schema mirrors into headers (x-mcp-header).
std::expected<void, Fault> check_parameter_headers(const HeaderLookup& headers, const Message& request,
                                                   std::string_view raw_input_schema);

/// Whether an Accept header admits a media type; wildcards and q-values count; absent admits all.
bool accepts(std::optional<std::string_view> accept, std::string_view media_type);

}  // namespace hive::mcp
