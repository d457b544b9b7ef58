#include "gateway/surfaces/mcp/http_answers.h"

#include <algorithm>
#include <utility>

namespace hive::mcp_surface {

net::http::Response fault_response(const mcp::Fault& fault) {
  net::http::Response response;
  response.status = fault.http_status;
  response.body = mcp::encode_fault(fault);
  return response;
}

net::http::Response refusal_response(unsigned status, int code, std::string message, std::string_view id) {
  return fault_response({.code = code, .message = std::move(message), .id = std::string(id), .http_status = status});
}

void respond(const rest::McpRequest& request, net::http::Response response) {
  response.headers.insert(response.headers.end(), request.headers.begin(), request.headers.end());
  request.responder->respond(std::move(response));
}

bool has_header(const net::http::Request& request, std::string_view name) {
  return std::ranges::any_of(request.headers, [&](const auto& header) { return header.first == name; });
}

mcp::HeaderLookup header_lookup(const net::http::Request& request) {
  return [&request](std::string_view name) { return request.header(name); };
}

// Lines of one list header mean the same as one line with all values (RFC 9110 section 5.3).
Accepted accepted(const net::http::Request& request) {
  std::string joined;
  std::string_view accept;
  bool is_first = true;
  for (const auto& [name, value] : request.headers) {
    if (name != "accept") continue;
    if (is_first) {
      accept = value;
      is_first = false;
      continue;
    }
    joined = std::string(accept) + ", " + value;
    accept = joined;
  }
  return {mcp::accepts(accept, "application/json"), mcp::accepts(accept, "text/event-stream")};
}

}  // namespace hive::mcp_surface
