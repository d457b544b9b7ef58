#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace hive::cli {

/// An MCP server behind the gateway. Texts are as the gateway sent them: not yet safe for a terminal.
struct UpstreamView {
  std::string name;
  std::string url;
  std::string status;
  std::string transport;
  std::string since;
  std::int64_t tools = 0;
  std::int64_t held_back = 0;
  std::vector<std::string> notes;  ///< what it lists and is not offered
};
/// One element of "upstreams" in GET /api/status. Members that are missing, as of an older gateway, are empty.
Result<UpstreamView> parse_upstream(std::string_view raw);

/// A tool whose description waits for an admin.
struct HeldBackView {
  std::string upstream;
  std::string tool;
  std::string current_sha256;
  std::string current;          ///< raw JSON
  std::string accepted_sha256;  ///< empty: it is new
  std::string accepted;         ///< raw JSON; empty: it is new
};
/// All of them in the body of GET /api/upstreams.
Result<std::vector<HeldBackView>> parse_held_back(std::string_view body);

}  // namespace hive::cli
