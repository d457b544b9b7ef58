#include "gateway/upstreams/directory.h"

#include <algorithm>

#include "base/strings.h"
#include "protocol/mcp/translation.h"

namespace hive::upstreams {

namespace {

constexpr std::size_t max_notes = 16;
constexpr std::string_view separator = "__";

bool is_named_by_prefix(ItemKind kind) {
  return kind == ItemKind::tools || kind == ItemKind::prompts;
}

// Without a prefix of its own, a server could call a tool as if it stood behind another name: "edge-1__run_command".
bool imitates(const Directory::Source& source, std::string_view name) {
  return source.prefix.empty() && name.contains(separator);
}

std::optional<Item> at(const std::vector<Item>& items, const auto& index, std::string_view name) {
  auto entry = index.find(name);
  return entry == index.end() ? std::nullopt : std::optional(items[entry->second]);
}

}  // namespace

Directory::Directory(std::span<const Source> sources) {
  auto listing = std::make_shared<Listing>();
  for (const Source& source : sources) {
    add(source, ItemKind::tools, listing->tools, tools_);
    add(source, ItemKind::prompts, listing->prompts, prompts_);
    add(source, ItemKind::resources, listing->resources, resources_);
    add(source, ItemKind::templates, listing->templates, templates_);
    for (const std::string& capability : source.catalog->capabilities) {
      if (std::ranges::find(listing->capabilities, capability) == listing->capabilities.end()) {
        listing->capabilities.push_back(capability);
      }
    }
  }
  for (const Item& item : listing->templates)
    matchers_.emplace_back(item.name);
  listing_ = std::move(listing);
}

void Directory::add(const Source& source, ItemKind kind, std::vector<Item>& items, Index& index) {
  for (const ListedItem& listed : source.catalog->of(kind)) {
    std::string public_name =
        is_named_by_prefix(kind) ? mcp::public_tool_name(source.prefix, listed.name) : listed.name;
    if (is_named_by_prefix(kind) && imitates(source, listed.name)) {
      note(source.upstream, fmt::format("{} is left out: without a prefix its name could be taken for that of an "
                                        "agent's tool; set prefix",
                                        quote(listed.name)));
      continue;
    }
    auto [entry, is_new] = index.try_emplace(public_name, items.size());
    if (!is_new) {
      note(source.upstream, fmt::format("{} is left out: the upstream server {} has {} already", quote(listed.name),
                                        quote(items[entry->second].upstream), quote(public_name)));
      continue;
    }
    items.push_back({source.upstream, listed.name, std::move(public_name), listed.raw});
  }
}

void Directory::note(const std::string& upstream, std::string text) {
  std::vector<std::string>& notes = notes_[upstream];
  if (notes.size() < max_notes) notes.push_back(std::move(text));
}

std::optional<Item> Directory::find_tool(std::string_view public_name) const {
  return at(listing_->tools, tools_, public_name);
}

std::optional<Item> Directory::find_prompt(std::string_view public_name) const {
  return at(listing_->prompts, prompts_, public_name);
}

std::optional<Item> Directory::find_resource(std::string_view uri) const {
  if (auto resource = at(listing_->resources, resources_, uri)) return resource;
  if (auto itself = at(listing_->templates, templates_, uri)) return itself;
  for (std::size_t k = 0; k < matchers_.size(); ++k) {
    if (matchers_[k].matches(uri)) return listing_->templates[k];
  }
  return std::nullopt;
}

std::vector<std::string> Directory::notes(const std::string& upstream) const {
  auto entry = notes_.find(upstream);
  return entry == notes_.end() ? std::vector<std::string>() : entry->second;
}

}  // namespace hive::upstreams
