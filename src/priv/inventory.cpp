#include "priv/inventory.h"

#include <cerrno>

#include <fcntl.h>

#include "priv/beneath.h"
#include "priv/file_copy.h"
#include "priv/names.h"
#include "priv/salvage.h"
#include "priv/switch.h"

namespace hive::priv {

namespace {

constexpr size_t max_names = 100'000;
// Bounds of one listing: a guest can make as many folders with the names of salvages as it likes.
constexpr size_t max_listed = 1000;
constexpr std::uint64_t max_counted = 200'000;
constexpr std::string_view snapshot_prefix = ".#machine.";
constexpr size_t snapshot_digits = 16;
constexpr std::chrono::milliseconds patience{0};

class SizeCount final : public WalkVisitor {
 public:
  SizeCount(KeptTree& tree, std::uint64_t& left) : tree_(tree), left_(left) {}
  Result<WalkStep> enter(const WalkEntry& entry) override {
    if (left_ == 0) {
      tree_.counted_all = false;
      return WalkStep::stop;
    }
    --left_;
    ++tree_.entries;
    if (S_ISREG(entry.status.st_mode)) tree_.bytes += content_blocks(entry.status);
    return WalkStep::go_on;
  }

 private:
  KeptTree& tree_;
  std::uint64_t& left_;
};

// The newest of them. What is in the way of counting (a mount, a link in the place of the folder) leaves the count
// incomplete.
std::vector<KeptTree> count_trees(const Site& site, int folder, const std::string& folder_path,
                                  std::vector<std::string> names) {
  if (names.size() > max_listed) names.erase(names.begin(), names.end() - max_listed);
  const WalkLimits limits = site.walk_limits();
  std::uint64_t left = max_counted;
  std::vector<KeptTree> trees;
  for (std::string& name : names) {
    KeptTree tree;
    tree.path = folder_path + "/" + name;
    tree.name = std::move(name);
    UniqueFd root = open_beneath(folder, tree.name.c_str(), O_RDONLY | O_DIRECTORY);
    SizeCount count(tree, left);
    if (!root || !walk_tree(root.get(), Exclusions(), limits, count)) tree.counted_all = false;
    trees.push_back(std::move(tree));
  }
  return trees;
}

// The container of ".#machine.h-iris0123456789abcdef"; empty for any other name.
std::string snapshot_container(std::string_view name) {
  if (!name.starts_with(snapshot_prefix) || name.size() < snapshot_prefix.size() + snapshot_digits) return {};
  std::string_view digits = name.substr(name.size() - snapshot_digits);
  if (digits.find_first_not_of("0123456789abcdef") != std::string_view::npos) return {};
  name.remove_prefix(snapshot_prefix.size());
  name.remove_suffix(snapshot_digits);
  return is_agent_container(name) ? std::string(name) : std::string();
}

void remove_leftover(const Site& site, int folder, const std::string& name, Leftover& leftover) {
  auto removed = remove_tree(folder, name, site.walk_limits(), true);
  leftover.removed = removed.has_value();
  if (!removed) leftover.problem = removed.error().message;
}

Result<void> find_snapshots(const Site& site, bool remove, std::vector<Leftover>& found) {
  for (const std::string& name : TRY(list_names(site.roots.get(), max_names, snapshot_prefix))) {
    std::string container = snapshot_container(name);
    if (container.empty() || is_running(TRY(site.host.units.active_state(container)))) continue;
    // nspawn holds the lock of its snapshot, whoever has started it.
    auto lock = lock_image(site.roots.get(), name);
    if (!lock && lock.error().code == ErrorCode::unavailable) continue;
    if (!lock) return std::unexpected(lock.error());
    Leftover leftover{
        .kind = "snapshot", .container = container, .path = site.layout.roots_dir + "/" + name, .problem = {}};
    if (remove) remove_leftover(site, site.roots.get(), name, leftover);
    if (leftover.removed || !remove) ::unlinkat(site.roots.get(), fmt::format(".#{}.lck", name).c_str(), 0);
    found.push_back(std::move(leftover));
  }
  return {};
}

Result<void> find_staging(const Site& site, bool remove, std::vector<Leftover>& found) {
  auto agents = open_folder(site.anchor.get(), site.layout.agents_dir);
  if (!agents && agents.error().code == ErrorCode::not_found) return {};
  if (!agents) return std::unexpected(agents.error());
  for (const std::string& agent : TRY(list_names(agents->get(), max_names))) {
    std::string container = "h-" + agent;
    if (!is_agent_container(container)) continue;
    auto folder = open_trusted_folder(site.anchor.get(), site.layout.agents_dir + "/" + agent);
    if (!folder) continue;
    for (const std::string& name : TRY(list_names(folder->get(), max_names, staging_prefix))) {
      if (!is_stamped(name, staging_prefix)) continue;
      // With the lock nobody begins a switch; with a record somebody will finish one.
      auto lock = site.lock(container, patience);
      if (!lock && lock.error().code == ErrorCode::unavailable) break;
      if (!lock) return std::unexpected(lock.error());
      if (TRY(load_record(site, container))) break;
      Leftover leftover{.kind = "staging",
                        .container = container,
                        .path = fmt::format("{}/{}/{}", site.layout.agents_dir, agent, name),
                        .problem = {}};
      if (remove) remove_leftover(site, folder->get(), name, leftover);
      found.push_back(std::move(leftover));
    }
  }
  return {};
}

}  // namespace

Result<std::vector<KeptTree>> list_salvages(const Site& site, const std::string& container) {
  std::string path = fmt::format("{}/{}/work", site.layout.agents_dir, agent_of(container));
  auto work = open_folder(site.anchor.get(), path);
  if (!work && work.error().code == ErrorCode::not_found) return std::vector<KeptTree>();
  if (!work) return std::unexpected(work.error());
  auto names = TRY(list_names(work->get(), max_names, salvage_prefix));
  std::erase_if(names, [](const std::string& name) { return !is_stamped(name, salvage_prefix); });
  return count_trees(site, work->get(), path, std::move(names));
}

Result<std::vector<KeptTree>> list_old_roots(const Site& site, const std::string& container) {
  return count_trees(site, site.roots.get(), site.layout.roots_dir, TRY(kept_roots(site, container)));
}

Result<std::vector<Leftover>> find_leftovers(const Site& site, bool remove) {
  std::vector<Leftover> found;
  TRY(find_snapshots(site, remove, found));
  TRY(find_staging(site, remove, found));
  return found;
}

}  // namespace hive::priv
