#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "gateway/store/database.h"
#include "gateway/upstreams/catalog.h"

namespace hive::upstreams {

/// A tool's description as somebody accepted it.
struct AcceptedTool {
  std::string sha256;  ///< tool_digest()
  std::string raw;
};
using AcceptedTools = std::map<std::string, AcceptedTool, std::less<>>;  ///< by the tool's name

/// The table of accepted descriptions. On the store's thread.
Result<AcceptedTools> load_accepted_tools(store::Connection& connection, std::string_view upstream);
Result<void> store_accepted_tool(store::Connection& connection, std::string_view upstream, std::string_view tool,
                                 const AcceptedTool& accepted, WallTime now);

/// What becomes of the tools that a server lists.
struct PinningResult {
  std::vector<ListedItem> offered;
  std::vector<HeldBackTool> held_back;
};
/// Offers what is described as it was accepted, and holds back the rest.
PinningResult hold_back_changed(std::string_view upstream, std::vector<ListedItem> listed,
                                const AcceptedTools& accepted);

}  // namespace hive::upstreams
