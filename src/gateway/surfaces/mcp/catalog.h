#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "gateway/surfaces/mcp/catalog_section.h"
#include "gateway/surfaces/mcp/core.h"

namespace hive::mcp_surface {

/// The four things that a server lists.
enum class Kind { tools, prompts, resources, templates };
inline constexpr std::array<Kind, 4> all_kinds = {Kind::tools, Kind::prompts, Kind::resources, Kind::templates};

/// Everything that there is to list at one moment; immutable.
struct Catalog {
  std::array<Section, all_kinds.size()> sections;
  std::uint64_t number = 0;  ///< another one for another content
  std::size_t digest = 0;
  bool is_complete = true;  ///< false: an agent is online whose tools are not known yet
  std::uint64_t fleet_version = 0;
  std::shared_ptr<const upstreams::Listing> listing;  ///< null: there are no upstreams

  [[nodiscard]] const Section& of(Kind kind) const { return sections[static_cast<std::size_t>(kind)]; }
};

/// The same for callers who see the same of every catalog: a key of their scopes and roles.
std::string scope_key(const policy::Principal& principal);

/// Keeps the catalog; asks no agent and no upstream. Thread-safe.
class Catalogs {
 public:
  explicit Catalogs(Dependencies dependencies) : dependencies_(std::move(dependencies)) {}

  /// The catalog as of now. Costs nothing while neither the fleet nor the upstreams have changed.
  [[nodiscard]] std::shared_ptr<const Catalog> current();

 private:
  /// Lists that agents share are taken apart once, and kept while one of them has it.
  struct KeptTools {
    std::weak_ptr<const fleet::ToolList> list;
    std::shared_ptr<const AgentTools> tools;
  };
  [[nodiscard]] std::shared_ptr<const AgentTools> tools_of(const std::shared_ptr<const fleet::ToolList>& list);
  [[nodiscard]] std::shared_ptr<Catalog> build(const fleet::FleetSnapshot& fleet,
                                               std::shared_ptr<const upstreams::Listing> listing);

  const Dependencies dependencies_;
  std::mutex mutex_;
  std::shared_ptr<const Catalog> current_;                            // guarded by mutex_
  std::uint64_t next_number_ = 1;                                     // guarded by mutex_
  std::unordered_map<const fleet::ToolList*, KeptTools> kept_tools_;  // guarded by mutex_
};

}  // namespace hive::mcp_surface
