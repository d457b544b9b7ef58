#pragma once

#include <string>
#include <string_view>

#include "gateway/surfaces/rest/mcp_endpoint.h"
#include "protocol/mcp/http_headers.h"
#include "protocol/mcp/message.h"

/// Answers of the transports that are over at once.
namespace hive::mcp_surface {

/// A JSON-RPC error with the status of the fault.
net::http::Response fault_response(const mcp::Fault& fault);

/// The same for what is wrong with the HTTP request; `id` is raw JSON and may be empty.
net::http::Response refusal_response(unsigned status, int code, std::string message, std::string_view id = {});

/// Answers a request with that and the headers that every answer carries.
void respond(const rest::McpRequest& request, net::http::Response response);

bool has_header(const net::http::Request& request, std::string_view name);
mcp::HeaderLookup header_lookup(const net::http::Request& request);

/// What the Accept header of a request admits. A header that is absent or empty admits all.
struct Accepted {
  bool json = false;
  bool events = false;
};
Accepted accepted(const net::http::Request& request);

}  // namespace hive::mcp_surface
