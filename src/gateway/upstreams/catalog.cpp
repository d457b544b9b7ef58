#include "gateway/upstreams/catalog.h"

#include <algorithm>

#include "base/strings.h"
#include "base/utf8.h"
#include "protocol/json.h"
#include "protocol/mcp/message.h"

namespace hive::upstreams {

namespace {

constexpr std::size_t max_name_bytes = 256;
constexpr std::size_t max_uri_bytes = 2048;
constexpr std::size_t max_cursor_bytes = 4096;
constexpr std::size_t max_remarks = 8;
constexpr std::size_t max_shown_bytes = 64;

/// The gateway's own resources; a server that listed one could speak in its name.
constexpr std::string_view own_scheme = "hive:";

std::string_view list_member(ItemKind kind) {
  return kind == ItemKind::templates ? "resourceTemplates" : capability_name(kind);
}

std::string_view name_member(ItemKind kind) {
  switch (kind) {
    case ItemKind::resources:
      return "uri";
    case ItemKind::templates:
      return "uriTemplate";
    default:
      return "name";
  }
}

std::string shown(std::string_view name) {
  return quote(utf8::truncate(name, max_shown_bytes));
}

Result<ListedItem> parse_item(ItemKind kind, std::string_view raw, const ListingLimits& limits) {
  if (raw.size() > limits.max_item_bytes) {
    return fail(ErrorCode::resource_exhausted, "an entry is longer than {} bytes", limits.max_item_bytes);
  }
  auto members = TRY(json::parse_object(raw, mcp::message_limits));
  auto raw_name = json::find(members, name_member(kind));
  auto name = raw_name ? json::decode_string(*raw_name) : std::nullopt;
  if (!name || name->empty()) return fail(ErrorCode::corrupt, "an entry has no {}", name_member(kind));
  bool is_uri = kind == ItemKind::resources || kind == ItemKind::templates;
  if (name->size() > (is_uri ? max_uri_bytes : max_name_bytes)) {
    return fail(ErrorCode::corrupt, "{} is too long", shown(*name));
  }
  // Names are shown, logged and approved by people; one that looks like another must not exist.
  if (escape_for_terminal(*name) != *name) {
    return fail(ErrorCode::corrupt, "{} holds characters that are not shown as they are", shown(*name));
  }
  if (is_uri && name->starts_with(own_scheme)) {
    return fail(ErrorCode::permission_denied, "{} is in the gateway's own name space", shown(*name));
  }
  if (kind == ItemKind::tools) {
    auto schema = json::find(members, "inputSchema");
    if (!schema || !json::is_object(*schema)) {
      return fail(ErrorCode::corrupt, "the tool {} has no inputSchema", shown(*name));
    }
  }
  return ListedItem{*std::move(name), std::string(raw)};
}

}  // namespace

std::string_view list_method(ItemKind kind) {
  switch (kind) {
    case ItemKind::tools:
      return "tools/list";
    case ItemKind::prompts:
      return "prompts/list";
    case ItemKind::resources:
      return "resources/list";
    case ItemKind::templates:
      return "resources/templates/list";
  }
  return {};
}

std::string_view capability_name(ItemKind kind) {
  switch (kind) {
    case ItemKind::tools:
      return "tools";
    case ItemKind::prompts:
      return "prompts";
    case ItemKind::resources:
    case ItemKind::templates:
      return "resources";
  }
  return {};
}

Result<ListingPage> parse_listing_page(ItemKind kind, std::string_view raw_result, const ListingLimits& limits) {
  auto members = TRY_CONTEXT(list_method(kind), json::parse_object(raw_result, mcp::message_limits));
  auto list = json::find(members, list_member(kind));
  if (!list || !json::is_array(*list)) {
    return fail(ErrorCode::corrupt, "{}: the answer has no list {}", list_method(kind), list_member(kind));
  }
  ListingPage page;
  for (std::string_view raw : TRY(json::parse_array(*list, mcp::message_limits))) {
    if (Result<ListedItem> item = parse_item(kind, raw, limits)) {
      page.items.push_back(*std::move(item));
    } else {
      ++page.left_out_count;
      if (page.left_out.size() < max_remarks) page.left_out.push_back(item.error().message);
    }
  }
  if (auto cursor = json::find(members, "nextCursor"); cursor && !json::is_null(*cursor)) {
    auto text = json::decode_string(*cursor);
    if (!text || text->size() > max_cursor_bytes) {
      return fail(ErrorCode::corrupt, "{}: nextCursor is no text of at most {} bytes", list_method(kind),
                  max_cursor_bytes);
    }
    page.next_cursor = *std::move(text);
  }
  return page;
}

std::vector<std::string> capability_names(std::string_view raw_capabilities) {
  std::vector<std::string> names;
  auto members = json::parse_object(raw_capabilities, mcp::message_limits).value_or(std::vector<json::Member>());
  for (std::string_view known : {"tools", "prompts", "resources", "logging", "completions"}) {
    auto capability = json::find(members, known);
    if (!capability || !json::is_object(*capability)) continue;
    names.emplace_back(known);
    auto details = json::parse_object(*capability, mcp::message_limits).value_or(std::vector<json::Member>());
    for (std::string_view flag : {"listChanged", "subscribe"}) {
      auto value = json::find(details, flag);
      if (value && *value == "true") names.push_back(fmt::format("{}.{}", known, flag));
    }
  }
  return names;
}

}  // namespace hive::upstreams
