#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "gateway/upstreams/upstreams.h"

namespace hive::upstreams {

/// What a server can list.
enum class ItemKind : std::uint8_t { tools, prompts, resources, templates };
inline constexpr std::array item_kinds = {ItemKind::tools, ItemKind::prompts, ItemKind::resources, ItemKind::templates};

/// "tools/list", ...
std::string_view list_method(ItemKind kind);
/// The member of the server's capabilities without which it is not asked; also of the result for all kinds but one.
std::string_view capability_name(ItemKind kind);

/// Bounds on what one server may list of one kind.
struct ListingLimits {
  std::size_t max_items = 2000;
  std::size_t max_bytes = std::size_t{4} << 20;
  std::size_t max_item_bytes = std::size_t{256} << 10;
  std::size_t max_pages = 500;
};

struct ListedItem {
  std::string name;  ///< of resources the URI, of templates the template
  std::string raw;

  bool operator==(const ListedItem&) const = default;
};

/// One page of a listing. What breaks the rules is left out and told in `left_out`, one line each, at most a few.
struct ListingPage {
  std::vector<ListedItem> items;
  std::string next_cursor;  ///< empty: the last page
  std::vector<std::string> left_out;
  std::size_t left_out_count = 0;
};
Result<ListingPage> parse_listing_page(ItemKind kind, std::string_view raw_result, const ListingLimits& limits);

/// What one server offers; immutable once it is published.
struct Catalog {
  std::array<std::vector<ListedItem>, item_kinds.size()> items;  ///< by ItemKind; tools without those held back
  std::vector<HeldBackTool> held_back;
  std::vector<std::string> capabilities;
  std::vector<std::string> notes;  ///< what was left out and why

  [[nodiscard]] const std::vector<ListedItem>& of(ItemKind kind) const { return items[static_cast<std::size_t>(kind)]; }
  [[nodiscard]] std::vector<ListedItem>& of(ItemKind kind) { return items[static_cast<std::size_t>(kind)]; }
};

/// The names of what a raw capabilities object declares: "tools", "tools.listChanged", "resources.subscribe",
/// "logging", "completions", ...
std::vector<std::string> capability_names(std::string_view raw_capabilities);

}  // namespace hive::upstreams
