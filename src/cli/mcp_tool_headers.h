#pragma once

#include <map>
#include <string>
#include <string_view>

#include "base/result.h"
#include "net/http/message.h"
#include "protocol/mcp/message.h"

namespace hive::cli {

/// The headers that a modern MCP request mirrors from its body (MCP 2026-07-28, Streamable HTTP, "Request Metadata").
/// Remembers from the tool lists which arguments belong into headers, too.
class McpToolHeaders {
 public:
  /// MCP-Protocol-Version, Mcp-Method, Mcp-Name and Mcp-Param-* of a request. Failure: an argument that no header can
  /// carry.
  [[nodiscard]] Result<net::http::Headers> headers_of(const mcp::Message& request, const mcp::RequestMeta& meta) const;

  /// Takes the tools of a result of tools/list.
  void learn(std::string_view raw_result);

 private:
  std::map<std::string, std::string, std::less<>> schemas_;  ///< raw, of the tools that mirror arguments
};

}  // namespace hive::cli
