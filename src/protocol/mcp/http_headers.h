#pragma once

#include <expected>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "protocol/mcp/message.h"

/// What modern requests mirror from their bodies into HTTP headers (MCP 2026-07-28, Streamable HTTP, Request Metadata).
namespace hive::mcp {

/// Looks a header up by its lower-case name; nullopt when it is absent or repeated.
using HeaderLookup = std::function<std::optional<std::string_view>(std::string_view)>;

/// The value of Mcp-Name or Mcp-Param-*: plain, or "=?base64?...?=" decoded (MCP 2026-07-28, Value Encoding). nullopt
/// for characters that must be encoded, and for encoded text that is no Base64 of UTF-8.
std::optional<std::string> decode_header_value(std::string_view value);
std::string encode_header_value(std::string_view value);

/// Holds the headers of a modern request against its body: MCP-Protocol-Version, Mcp-Method, Mcp-Name. -32020 with
/// status 400 otherwise; -32602 with status 400 if the body has no version. Whether the version is supported is for
/// modern_revision() to say.
std::expected<void, Fault> check_headers(const HeaderLookup& headers, const Message& request, const RequestMeta& meta);

/// The same for the parameters that the tool's input schema mirrors into headers (x-mcp-header). A schema whose
/// annotations break the rules is refused as well: what stands in the headers then means nothing.
std::expected<void, Fault> check_parameter_headers(const HeaderLookup& headers, const Message& request,
                                                   std::string_view raw_input_schema);

/// A parameter that a tool's input schema mirrors into a header.
struct MirroredParameter {
  std::string header;             ///< as it follows "Mcp-Param-"
  std::vector<std::string> path;  ///< the keys that lead to the value in the arguments
};
/// All of them. Failure: the annotations break the rules of the specification, so that a client must leave the tool out
/// of what it lists; the message says which rule.
Result<std::vector<MirroredParameter>> mirrored_parameters(std::string_view raw_input_schema);

struct Header {
  std::string name;
  std::string value;  ///< encoded
};
/// What a client sends along with a call of the tool: one Mcp-Param-* header for each mirrored parameter that has a
/// value. Failure: as above, or a value that no header can carry.
Result<std::vector<Header>> parameter_headers(std::string_view raw_input_schema, std::string_view raw_arguments);

/// Mcp-Method, and Mcp-Name where the method has one, for a request that goes out. MCP-Protocol-Version is not among
/// them.
std::vector<Header> request_headers(std::string_view method, std::string_view raw_params);

/// Whether an Accept header admits a media type (RFC 9110 section 12.5.1): wildcards and q-values count, the most
/// specific range decides; absent or empty admits all.
bool accepts(std::optional<std::string_view> accept, std::string_view media_type);

}  // namespace hive::mcp
