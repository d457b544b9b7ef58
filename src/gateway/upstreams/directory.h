#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "gateway/upstreams/catalog.h"
#include "gateway/upstreams/upstreams.h"
#include "gateway/upstreams/uri_template.h"

/// Private to this room.
namespace hive::upstreams {

/// What all servers together offer, under the names by which clients know it; immutable.
class Directory {
 public:
  struct Source {
    std::string upstream;
    std::string prefix;
    std::shared_ptr<const Catalog> catalog;
  };

  /// `sources` in the order of the configuration: where two claim one name, the first has it, and what is refused is
  /// told in notes().
  explicit Directory(std::span<const Source> sources);

  [[nodiscard]] std::shared_ptr<const Listing> listing() const { return listing_; }
  [[nodiscard]] std::optional<Item> find_tool(std::string_view public_name) const;
  [[nodiscard]] std::optional<Item> find_prompt(std::string_view public_name) const;
  [[nodiscard]] std::optional<Item> find_resource(std::string_view uri) const;
  /// Lines about one upstream: what it lists and is not offered.
  [[nodiscard]] std::vector<std::string> notes(const std::string& upstream) const;

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };
  using Index = std::unordered_map<std::string, std::size_t, Hash, std::equal_to<>>;  ///< to a place in the listing

  void add(const Source& source, ItemKind kind, std::vector<Item>& items, Index& index);
  void note(const std::string& upstream, std::string text);

  std::shared_ptr<const Listing> listing_;
  Index tools_;
  Index prompts_;
  Index resources_;
  Index templates_;
  std::vector<UriTemplate> matchers_;  ///< of the listing's templates
  std::unordered_map<std::string, std::vector<std::string>> notes_;
};

}  // namespace hive::upstreams
