#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "gateway/surfaces/mcp/core.h"

namespace hive::mcp_surface {

/// The four things that a server lists.
enum class Kind { tools, prompts, resources, templates };
inline constexpr std::array<Kind, 4> all_kinds = {Kind::tools, Kind::prompts, Kind::resources, Kind::templates};

/// Whose a thing is.
enum class Owner { gateway, agent, upstream };

/// One tool, prompt, resource or resource template as clients know it.
struct Entry {
  std::string name;  ///< for clients; of resources the URI, of templates the URI template
  Owner owner = Owner::gateway;
  std::string target = {};    ///< the agent or upstream
  std::string own_name = {};  ///< as the target knows it
  std::string gate = {};      ///< the tool for which the policy is asked
  bool for_admins = false;
  bool for_callers = false;                     ///< for roles that may call tools
  std::shared_ptr<const std::string> raw = {};  ///< the whole object as its owner described it
  std::size_t digest = 0;                       ///< of everything above
};

/// The entries of one kind in the order in which they are listed, found by name.
struct Section {
  std::vector<Entry> entries;
  std::unordered_map<std::string_view, std::size_t> by_name;  // views of entries

  [[nodiscard]] const Entry* find(std::string_view name) const;
};

/// Everything that there is to list at one moment; immutable.
struct Catalog {
  std::array<Section, all_kinds.size()> sections;
  std::uint64_t number = 0;  ///< another one for another content
  std::size_t digest = 0;
  bool is_complete = true;  ///< false: an agent is online whose tools are not known yet
  SteadyTime built_at;

  [[nodiscard]] const Section& of(Kind kind) const { return sections[static_cast<std::size_t>(kind)]; }
};

/// Whether a caller may know of an entry.
bool is_visible(const policy::Policy& policy, const policy::Principal& principal, const Entry& entry);
/// Changes when what a caller sees of a kind changes.
std::size_t digest_of_visible(const policy::Policy& policy, const policy::Principal& principal, const Section& section);
/// The same for callers who see the same: a key of their scopes and roles.
std::string scope_key(const policy::Principal& principal);

/// Keeps the catalog; asks no agent and no upstream. Thread-safe.
class Catalogs : public std::enable_shared_from_this<Catalogs> {
 public:
  explicit Catalogs(Dependencies dependencies) : dependencies_(std::move(dependencies)) {}

  /// The catalog as of now: built again after outdate(). After a few seconds it is looked through again in the
  /// background, since agents learn of new tools without telling anybody.
  [[nodiscard]] std::shared_ptr<const Catalog> current();
  void outdate() { outdated_ = true; }

 private:
  [[nodiscard]] bool is_stale(const Catalog& catalog) const;
  [[nodiscard]] std::shared_ptr<Catalog> build() const;
  void refresh(const std::shared_ptr<const Catalog>& before);
  void install(std::shared_ptr<Catalog> built);  // with mutex_

  const Dependencies dependencies_;
  std::atomic<bool> outdated_ = false;
  std::mutex mutex_;
  std::shared_ptr<const Catalog> current_;  // guarded by mutex_
  std::uint64_t next_number_ = 1;           // guarded by mutex_
  bool is_refreshing_ = false;              // guarded by mutex_
};

}  // namespace hive::mcp_surface
