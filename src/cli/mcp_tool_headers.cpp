#include "cli/mcp_tool_headers.h"

#include "protocol/json.h"
#include "protocol/mcp/http_headers.h"

namespace hive::cli {

namespace {

constexpr std::size_t max_tools = 1000;
constexpr std::size_t max_schema_bytes = std::size_t{64} << 10;

}  // namespace

void McpToolHeaders::learn(std::string_view raw_result) {
  auto result = json::parse_object(raw_result, mcp::message_limits);
  auto tools = result ? json::parse_array(json::find(*result, "tools").value_or("[]"), mcp::message_limits)
                      : std::unexpected(result.error());
  if (!tools) return;
  for (std::string_view raw_tool : *tools) {
    auto tool = json::parse_object(raw_tool, mcp::message_limits);
    if (!tool) continue;
    auto name = json::decode_string(json::find(*tool, "name").value_or(""));
    if (!name) continue;
    std::string_view schema = json::find(*tool, "inputSchema").value_or("");
    auto mirrored = mcp::mirrored_parameters(schema);
    // A tool whose annotations break the rules mirrors nothing; what to make of it is the client's affair.
    if (!mirrored || mirrored->empty() || schema.size() > max_schema_bytes) {
      schemas_.erase(*name);
    } else if (schemas_.size() < max_tools || schemas_.contains(*name)) {
      schemas_[*name] = schema;
    }
  }
}

Result<net::http::Headers> McpToolHeaders::headers_of(const mcp::Message& request, const mcp::RequestMeta& meta) const {
  net::http::Headers headers;
  headers.emplace_back("MCP-Protocol-Version", meta.protocol_version.value_or(std::string(to_string(mcp::newest))));
  for (mcp::Header& header : mcp::request_headers(request.method, request.params))
    headers.emplace_back(std::move(header.name), std::move(header.value));
  if (request.method != "tools/call") return headers;
  auto params = json::parse_object(request.params.empty() ? "{}" : request.params, mcp::message_limits);
  if (!params) return headers;
  auto name = json::decode_string(json::find(*params, "name").value_or(""));
  auto schema = name ? schemas_.find(*name) : schemas_.end();
  if (schema == schemas_.end()) return headers;
  auto mirrored = TRY(mcp::parameter_headers(schema->second, json::find(*params, "arguments").value_or("{}")));
  for (mcp::Header& header : mirrored)
    headers.emplace_back(std::move(header.name), std::move(header.value));
  return headers;
}

}  // namespace hive::cli
