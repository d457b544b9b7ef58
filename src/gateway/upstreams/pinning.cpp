#include "gateway/upstreams/pinning.h"

#include <chrono>

#include "gateway/upstreams/tool_digest.h"

namespace hive::upstreams {

Result<AcceptedTools> load_accepted_tools(store::Connection& connection, std::string_view upstream) {
  AcceptedTools tools;
  store::Statement query =
      TRY(connection.prepare("SELECT tool, sha256, description FROM accepted_tools WHERE upstream = ?"));
  query.bind(0, upstream);
  while (TRY(query.step()))
    tools[query.text(0)] = {query.text(1), query.text(2)};
  return tools;
}

Result<void> store_accepted_tool(store::Connection& connection, std::string_view upstream, std::string_view tool,
                                 const AcceptedTool& accepted, WallTime now) {
  store::Statement statement =
      TRY(connection.prepare("INSERT INTO accepted_tools (upstream, tool, sha256, description, accepted_at) VALUES "
                             "(?, ?, ?, ?, ?) ON CONFLICT (upstream, tool) DO UPDATE SET sha256 = excluded.sha256, "
                             "description = excluded.description, accepted_at = excluded.accepted_at"));
  std::int64_t now_ms = std::chrono::floor<std::chrono::milliseconds>(now.time_since_epoch()).count();
  return statement.bind(0, upstream).bind(1, tool).bind(2, accepted.sha256).bind(3, accepted.raw).bind(4, now_ms).run();
}

PinningResult hold_back_changed(std::string_view upstream, std::vector<ListedItem> listed,
                                const AcceptedTools& accepted) {
  PinningResult result;
  for (ListedItem& item : listed) {
    std::string digest = tool_digest(item.raw);
    auto known = accepted.find(item.name);
    if (known != accepted.end() && known->second.sha256 == digest) {
      result.offered.push_back(std::move(item));
      continue;
    }
    bool is_known = known != accepted.end();
    result.held_back.push_back({.upstream = std::string(upstream),
                                .tool = std::move(item.name),
                                .accepted_sha256 = is_known ? known->second.sha256 : "",
                                .current_sha256 = std::move(digest),
                                .accepted_raw = is_known ? known->second.raw : "",
                                .current_raw = std::move(item.raw)});
  }
  return result;
}

}  // namespace hive::upstreams
