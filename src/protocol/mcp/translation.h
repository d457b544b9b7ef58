#pragma once

#include <chrono>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "protocol/mcp/message.h"

/// What differs between the eras in otherwise equal answers.
namespace hive::mcp {

enum class CacheScope { shared, per_caller };  ///< "public", "private"

struct CacheHint {
  std::chrono::milliseconds time_to_live{0};
  CacheScope scope = CacheScope::per_caller;
};

/// A result as a client of `revision` must see it, from a result of any revision: modern results get resultType (unless
/// they have one), caching hints where the method has them and the result none, and serverInfo in _meta; legacy results
/// lose what only modern ones have, and fields that their revision does not know (structuredContent and outputSchema
/// before 2025-06-18, audio before 2025-03-26 as a text block that says so, ...). Members that no revision knows
/// survive. `raw_server_info` replaces what an upstream says of itself; empty: nothing is said. A result that is not
/// "complete" has no legacy form: its resultType stays, so that nobody takes it for complete.
std::string adapt_result(std::string_view raw_result, std::string_view method, Revision revision,
                         std::string_view raw_server_info, const CacheHint& hint);

/// An error object of a server behind us likewise: -32002 to -32602 and back, codes that a revision may not emit;
/// `data` survives. -32603 is what no error object becomes, and what is about the way to that server: -32020 and
/// -32022.
std::string adapt_error(std::string_view raw_error, std::string_view method, Revision revision);

/// The HTTP status of a modern error answer: 404 for -32601, 400 for -32700, -32600 and -32020 to -32022, 200
/// otherwise. Faults carry their own status, such as 400 for a -32602 about params._meta.
unsigned http_status_of_error(std::string_view raw_error);

/// "complete", "input_required", or what else resultType says; "complete" when absent. Anything else, also a value that
/// is no string, is for callers to refuse.
std::string result_type(std::string_view raw_result);

/// The capabilities that a server request needs: "elicitation", "sampling" or "roots"; empty for other methods.
std::string_view capability_of(std::string_view server_request_method);
/// Whether a raw capabilities object declares one.
bool has_capability(std::string_view raw_capabilities, std::string_view capability);

/// {"resultType":"input_required","inputRequests":{KEY:{"method":...,"params":...}},"requestState":STATE}.
struct InputRequest {
  std::string key;
  std::string method;
  std::string params;  ///< raw object
};
/// `request_state` is plain text that becomes a JSON string; empty: the member is left out, as are no requests.
std::string encode_input_required(std::span<const InputRequest> requests, std::string_view request_state);
/// The requests and the raw requestState ("" if absent) of such a result. At most 64 requests; requestState, if there,
/// is a string; at least one of both is there.
struct InputRequired {
  std::vector<InputRequest> requests;
  std::string request_state;  ///< raw JSON
};
Result<InputRequired> parse_input_required(std::string_view raw_result);

/// A tool's name for clients: PREFIX__TOOL if it has at most 64 characters of A-Z a-z 0-9 _ . - / and its first "__" is
/// the one between the two, otherwise a stable form of at most 64 such characters that ends in "-" and 10 hexadecimal
/// digits of a SHA-256 over both parts. So a__b and c never meet a and b__c. An empty prefix adds nothing, and then
/// names of several servers may be the same.
std::string public_tool_name(std::string_view prefix, std::string_view tool);

}  // namespace hive::mcp
