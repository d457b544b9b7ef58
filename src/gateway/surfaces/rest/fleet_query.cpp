#include "gateway/surfaces/rest/fleet_query.h"

#include <algorithm>
#include <array>

#include "base/strings.h"
#include "gateway/policy/scope.h"
#include "net/http/ascii.h"

namespace hive::rest {

namespace {

using net::http::to_lower;

constexpr std::int64_t max_limit = 1000;
constexpr std::size_t max_text_bytes = 256;
constexpr std::size_t max_cursor_bytes = 4096;
constexpr std::array<std::string_view, 5> statuses = {"online", "offline", "stale", "never_connected", "flapping"};
// In the order of FleetQuery::Key.
constexpr std::array<std::string_view, 5> keys = {"id", "address", "os", "connected_at", "offline_since"};

bool contains_folded(std::string_view text, std::string_view lower) {
  auto fold = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c; };
  return !std::ranges::search(text, lower, {}, fold).empty();
}

/// Sorts as text as the times do.
std::string sortable(WallTime time) {
  return time == WallTime() ? std::string() : format_rfc3339(time);
}

}  // namespace

Result<FleetQuery> FleetQuery::parse(const Parameters& parameters, const config::GatewayConfig& config) {
  auto text = [&](std::string_view name) { return parameters(name).value_or(""); };
  FleetQuery query;
  query.config_ = &config;
  query.status_ = to_lower(text("status"));
  query.tag_ = text("tag");
  query.os_ = to_lower(text("os"));
  query.id_glob_ = text("id");
  query.text_ = to_lower(text("q"));
  for (const auto& [name, value] :
       {std::pair("os", &query.os_), std::pair("id", &query.id_glob_), std::pair("q", &query.text_)}) {
    if (value->size() > max_text_bytes) {
      return fail(ErrorCode::invalid_argument, "{}: longer than {} bytes", name, max_text_bytes);
    }
  }
  auto limit = parameters("limit");
  if (!limit) {
    for (std::string_view name : {"cursor", "sort"}) {
      if (parameters(name)) {
        return fail(ErrorCode::invalid_argument, "{}: only together with limit", name);
      }
    }
    return query;
  }
  std::optional<std::int64_t> number = parse_int64(*limit);
  if (!number || *number < 1 || *number > max_limit) {
    return fail(ErrorCode::invalid_argument, "limit: not a whole number from 1 to {}", max_limit);
  }
  query.limit_ = static_cast<std::size_t>(*number);
  if (!query.status_.empty() && query.status_ != "all" &&
      std::ranges::find(statuses, query.status_) == statuses.end()) {
    return fail(ErrorCode::invalid_argument,
                "status: not one of all, online, offline, stale, never_connected, flapping");
  }
  TRY(query.read_order(text("sort")));
  TRY(query.read_cursor(text("cursor")));
  return query;
}

Result<void> FleetQuery::read_order(const std::string& sort) {
  std::string_view name = sort;
  if (name.starts_with('-')) {
    is_descending_ = true;
    name.remove_prefix(1);
  }
  if (sort.empty()) return {};
  const auto* found = std::ranges::find(keys, name);
  if (found == keys.end()) {
    return fail(ErrorCode::invalid_argument,
                "sort: not one of id, address, os, connected_at, offline_since, with \"-\" in front "
                "for the other way round");
  }
  key_ = static_cast<Key>(found - keys.begin());
  return {};
}

// What the cursor says is only where to go on; a made-up one shows nothing that another query would not.
Result<void> FleetQuery::read_cursor(const std::string& cursor) {
  if (cursor.empty()) return {};
  auto refuse = [] { return fail(ErrorCode::invalid_argument, "cursor: not the next_cursor of a page in this order"); };
  if (cursor.size() > max_cursor_bytes) return refuse();
  auto bytes = from_hex(cursor);
  if (!bytes) return refuse();
  std::vector<std::string_view> parts = split(as_text(*bytes), '\n');
  std::string order = fmt::format("{}{}", is_descending_ ? "-" : "", keys[static_cast<std::size_t>(key_)]);
  if (parts.size() != 3 || parts[0] != order || !check_agent_id(parts[2])) return refuse();
  after_ = Place{std::string(parts[1]), std::string(parts[2])};
  return {};
}

std::string FleetQuery::cursor_of(const Place& place) const {
  std::string text =
      fmt::format("{}{}\n{}\n{}", is_descending_ ? "-" : "", keys[static_cast<std::size_t>(key_)], place.key, place.id);
  return to_hex(as_bytes(text));
}

const std::vector<std::string>& FleetQuery::tags_of(std::string_view agent) const {
  static const std::vector<std::string> none;
  if (config_->agent_tags.empty()) return none;
  auto found = config_->agent_tags.find(std::string(agent));
  return found == config_->agent_tags.end() ? none : found->second;
}

bool FleetQuery::admits(const fleet::AgentStatus& agent) const {
  if (status_ == "online" && !agent.online) return false;
  if (status_ == "stale" && agent.online) return false;
  if (status_ == "offline" && (agent.online || !agent.has_connected())) return false;
  if (status_ == "never_connected" && agent.has_connected()) return false;
  if (status_ == "flapping" && agent.flapping == nullptr) return false;
  if (!id_glob_.empty() && !policy::glob_matches(id_glob_, agent.id)) return false;
  if (!os_.empty() && !contains_folded(os_text(agent), os_)) return false;
  if (tag_.empty() && text_.empty()) return true;
  const std::vector<std::string>& tags = tags_of(agent.id);
  if (!tag_.empty() && std::ranges::find(tags, tag_) == tags.end()) return false;
  return text_.empty() || matches_text(agent, tags);
}

bool FleetQuery::matches_text(const fleet::AgentStatus& agent, const std::vector<std::string>& tags) const {
  auto holds = [this](std::string_view text) { return contains_folded(text, text_); };
  return holds(agent.id) || holds(agent.address) || holds(os_text(agent)) || holds(agent.agent_version) ||
         std::ranges::any_of(tags, holds) || std::ranges::any_of(agent.running_services, holds);
}

// Without line feeds, which part the cursor.
std::string FleetQuery::key_of(const fleet::AgentStatus& agent) const {
  std::string key;
  switch (key_) {
    case Key::id:
      break;
    case Key::address:
      key = agent.address;
      break;
    case Key::os:
      key = to_lower(os_text(agent));
      break;
    case Key::connected_at:
      key = sortable(agent.connected_at);
      break;
    case Key::offline_since:
      key = sortable(agent.offline_since);
      break;
  }
  std::ranges::replace(key, '\n', ' ');
  return key;
}

bool FleetQuery::is_behind_cursor(const Place& place) const {
  if (!after_) return true;
  return is_descending_ ? place < *after_ : *after_ < place;
}

FleetQuery::Page FleetQuery::page_of(const fleet::FleetSnapshot& fleet,
                                     const std::function<bool(const fleet::AgentStatus&)>& is_visible) const {
  Page page;
  std::vector<std::pair<Place, const fleet::AgentPointer*>> found;
  for (const fleet::AgentPointer& agent : fleet.agents) {
    if (!admits(*agent) || !is_visible(*agent)) continue;
    page.counts.add(*agent);
    // The fleet is sorted by id already.
    if (key_ == Key::id && !is_descending_) {
      if (limit_ == 0) {
        page.agents.push_back(agent);
        continue;
      }
      if (found.size() > limit_) continue;
    }
    Place place{key_of(*agent), agent->id};
    if (is_behind_cursor(place)) found.emplace_back(std::move(place), &agent);
  }
  std::size_t count = std::min(found.size(), limit_);
  auto order = [this](const auto& left, const auto& right) {
    return is_descending_ ? right.first < left.first : left.first < right.first;
  };
  std::ranges::partial_sort(found, found.begin() + static_cast<std::ptrdiff_t>(count), order);
  page.agents.reserve(count);
  for (std::size_t i = 0; i < count; ++i)
    page.agents.push_back(*found[i].second);
  if (count < found.size()) page.next_cursor = cursor_of(found[count - 1].first);
  return page;
}

}  // namespace hive::rest
