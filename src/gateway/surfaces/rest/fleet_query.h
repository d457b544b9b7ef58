#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "config/gateway_config.h"
#include "gateway/fleet/agent_status.h"
#include "gateway/surfaces/rest/agent_json.h"

namespace hive::rest {

/// Which agents GET /api/fleet and GET /api/status are asked for.
class FleetQuery {
 public:
  /// What a caller says: the value of status, tag, os, id, q, sort, limit or cursor; nullopt where it says nothing.
  using Parameters = std::function<std::optional<std::string>(std::string_view name)>;
  /// Without `limit`, as the reference reads it: a status that it does not know means all.
  static Result<FleetQuery> parse(const Parameters& parameters, const config::GatewayConfig& config);

  [[nodiscard]] bool has_pages() const { return limit_ > 0; }
  [[nodiscard]] bool admits(const fleet::AgentStatus& agent) const;
  [[nodiscard]] const std::vector<std::string>& tags_of(std::string_view agent) const;

  /// One page, and what there is in all.
  struct Page {
    std::vector<fleet::AgentPointer> agents;
    AgentCounts counts;
    std::string next_cursor;  ///< empty: this is the last page
  };
  /// A page begins behind the place of the last agent of the one before, so that agents that come and go meanwhile
  /// neither repeat nor hide others. Without limit, all of them. `is_visible`: of those that the query admits.
  [[nodiscard]] Page page_of(const fleet::FleetSnapshot& fleet,
                             const std::function<bool(const fleet::AgentStatus&)>& is_visible) const;

 private:
  enum class Key { id, address, os, connected_at, offline_since };
  struct Place {
    std::string key;  ///< empty when sorted by id
    std::string id;
    auto operator<=>(const Place&) const = default;
  };

  FleetQuery() = default;
  Result<void> read_order(const std::string& sort);
  Result<void> read_cursor(const std::string& cursor);
  [[nodiscard]] bool matches_text(const fleet::AgentStatus& agent, const std::vector<std::string>& tags) const;
  [[nodiscard]] std::string key_of(const fleet::AgentStatus& agent) const;
  [[nodiscard]] std::string cursor_of(const Place& place) const;
  [[nodiscard]] bool is_behind_cursor(const Place& place) const;

  const config::GatewayConfig* config_ = nullptr;
  std::string status_;
  std::string tag_;
  std::string os_;         // lower case
  std::string id_glob_;    // empty: any
  std::string text_;       // lower case
  std::size_t limit_ = 0;  // 0: everything at once
  Key key_ = Key::id;
  bool is_descending_ = false;
  std::optional<Place> after_;
};

}  // namespace hive::rest
