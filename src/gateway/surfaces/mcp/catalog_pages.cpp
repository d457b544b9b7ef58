#include "gateway/surfaces/mcp/catalog_pages.h"

#include <optional>
#include <vector>

#include "base/strings.h"
#include "protocol/json_object.h"
#include "protocol/mcp/translation.h"

namespace hive::mcp_surface {

namespace {

constexpr std::chrono::seconds list_time_to_live{5};
constexpr std::size_t max_cursor_bytes = 4096;
constexpr std::string_view any_object_schema = R"({"type":"object"})";

std::optional<Section::Place> decode_cursor(const Section& section, std::string_view cursor) {
  if (cursor.size() > max_cursor_bytes) return std::nullopt;
  auto bytes = from_hex(cursor);
  return bytes ? section.behind_bookmark(as_text(*bytes)) : std::nullopt;
}

std::string title_of(const Entry& entry, const std::vector<json::Member>& members) {
  auto raw = json::find(members, "title");
  auto title = raw ? json::decode_string(*raw) : std::nullopt;
  return fmt::format("{} on {}", title ? *title : entry.own_name, entry.target);
}

std::string render(Kind kind, const Entry& entry, const policy::Policy& policy) {
  if (kind == Kind::tools) return render_tool(entry, policy);
  if (kind != Kind::prompts || entry.owner == Owner::gateway) return *entry.raw;
  std::string name = json::encode_string(entry.name);
  return mcp::with_members(*entry.raw, std::vector<mcp::MemberChange>{{"name", name}});
}

std::string render_page(const Section& section, const policy::Policy& policy, const policy::Principal& principal,
                        Kind kind, const Section::Place& begin) {
  std::string array = "[";
  std::size_t count = 0;
  std::string next_cursor;
  Section::Place last;
  section.visit(begin, policy, principal, [&](const Entry& entry, const Section::Place& place) {
    if (count == CatalogPages::page_size) {
      next_cursor = to_hex(as_bytes(section.bookmark(last)));
      return false;
    }
    std::string raw = render(kind, entry, policy);
    if (raw.empty()) return true;
    if (count++ > 0) array += ',';
    array += raw;
    last = place;
    return true;
  });
  json::ObjectText result;
  result.raw(list_member(kind), array + ']');
  if (!next_cursor.empty()) result.text("nextCursor", next_cursor);
  return result.take();
}

}  // namespace

std::string_view list_method(Kind kind) {
  switch (kind) {
    case Kind::tools:
      return "tools/list";
    case Kind::prompts:
      return "prompts/list";
    case Kind::resources:
      return "resources/list";
    case Kind::templates:
      return "resources/templates/list";
  }
  return {};
}

std::string_view list_member(Kind kind) {
  switch (kind) {
    case Kind::tools:
      return "tools";
    case Kind::prompts:
      return "prompts";
    case Kind::resources:
      return "resources";
    case Kind::templates:
      return "resourceTemplates";
  }
  return {};
}

std::string render_tool(const Entry& entry, const policy::Policy& policy) {
  auto members = json::parse_object(*entry.raw, mcp::message_limits);
  if (!members) return {};
  if (entry.owner == Owner::gateway) return *entry.raw;
  std::string name = json::encode_string(entry.name);
  std::vector<mcp::MemberChange> changes = {{"name", name}};
  std::string title;
  std::string description;
  if (entry.owner == Owner::agent) {
    // The same tool of many agents would look alike in a client's list.
    title = json::encode_string(title_of(entry, *members));
    changes.push_back({"title", title});
    if (!json::find(*members, "description")) {
      description = json::encode_string(fmt::format("{} of the agent {}", entry.own_name, entry.target));
      changes.push_back({"description", description});
    }
  }
  auto schema = json::find(*members, "inputSchema");
  if (!schema || !json::is_object(*schema)) changes.push_back({"inputSchema", any_object_schema});
  protocol::Tier tier =
      entry.owner == Owner::upstream ? policy.tier_of_upstream(entry.own_name) : policy.tier_of(entry.own_name, "{}");
  if (!json::find(*members, "annotations")) {
    changes.push_back({"annotations", tier == protocol::Tier::read
                                          ? R"({"readOnlyHint":true,"destructiveHint":false})"
                                          : R"({"readOnlyHint":false,"destructiveHint":true})"});
  }
  std::string meta;
  if (!json::find(*members, "_meta")) {
    meta = fmt::format(R"({{"myrmex-hive/tier":"{}"}})", protocol::to_string(tier));
    changes.push_back({"_meta", meta});
  }
  return mcp::with_members(*entry.raw, changes);
}

std::shared_ptr<const std::string> CatalogPages::page(const std::shared_ptr<const Catalog>& catalog,
                                                      const std::shared_ptr<const policy::Policy>& policy,
                                                      const policy::Principal& principal, Kind kind,
                                                      std::string_view cursor, mcp::Revision revision,
                                                      std::string_view server_info) {
  const Section& section = catalog->of(kind);
  auto begin = cursor.empty() ? std::optional(Section::Place()) : decode_cursor(section, cursor);
  if (!begin) return nullptr;
  std::string key = fmt::format("{} {} {} {} {} {}", static_cast<int>(kind), static_cast<int>(begin->part),
                                begin->index, begin->tool, mcp::to_string(revision), scope_key(principal));
  {
    std::lock_guard lock(mutex_);
    if (catalog_number_ != catalog->number || policy_ != policy || kept_.size() >= max_kept_pages) {
      kept_.clear();
      catalog_number_ = catalog->number;
      policy_ = policy;
    }
    if (auto found = kept_.find(key); found != kept_.end()) return found->second;
  }
  // What a caller sees depends on its scope, so nobody but the caller may keep it.
  mcp::CacheHint hint{.time_to_live = list_time_to_live, .scope = mcp::CacheScope::per_caller};
  auto rendered = std::make_shared<const std::string>(mcp::adapt_result(
      render_page(section, *policy, principal, kind, *begin), list_method(kind), revision, server_info, hint));
  std::lock_guard lock(mutex_);
  if (catalog_number_ == catalog->number && policy_ == policy) kept_.emplace(std::move(key), rendered);
  return rendered;
}

}  // namespace hive::mcp_surface
