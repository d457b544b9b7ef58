#include "priv/salvage.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <ctime>
#include <optional>

#include <fcntl.h>
#include <sys/stat.h>

#include "base/strings.h"
#include "priv/beneath.h"

namespace hive::priv {

namespace {

constexpr size_t stamp_bytes = 16;  // 20261130T125723Z
constexpr size_t random_bytes = 6;
constexpr uid_t shift_unit = 65536;  // nspawn shifts by multiples of it
// Beyond this a tree of folders counts as content: somebody has made it.
constexpr std::uint64_t max_skeleton_entries = 20'000;
constexpr size_t max_skeleton_depth = 64;
constexpr std::array<std::string_view, 3> skeleton_files = {"etc/machine-id", "etc/os-release", "etc/resolv.conf"};

class ContentSearch final : public WalkVisitor {
 public:
  Result<WalkStep> enter(const WalkEntry& entry) override {
    if (S_ISDIR(entry.status.st_mode)) return WalkStep::go_on;
    if (std::ranges::find(skeleton_files, std::string_view(entry.path)) != skeleton_files.end()) return WalkStep::go_on;
    found_ = true;
    return WalkStep::stop;
  }
  [[nodiscard]] bool found() const { return found_; }

 private:
  bool found_ = false;
};

Exclusions exclusions_for(const Site& site, const ConfFile& conf) {
  std::vector<std::string> patterns = site.settings.excluded;
  // A NixOS guest has its system in the store; any other has it in its root, where the template brings it anew.
  if (!conf.value("SYSTEM_PATH") && !conf.value("FLAKE")) {
    patterns.insert(patterns.end(), site.settings.excluded_distro.begin(), site.settings.excluded_distro.end());
  }
  return Exclusions(patterns);
}

}  // namespace

std::string time_suffix(WallTime now) {
  std::time_t seconds = std::chrono::system_clock::to_time_t(now);
  std::tm parts{};
  ::gmtime_r(&seconds, &parts);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y%m%dT%H%M%SZ", &parts);
  return fmt::format("{}-{}", text.data(), random_name(random_bytes));
}

bool is_stamped(std::string_view name, std::string_view prefix) {
  if (!name.starts_with(prefix)) return false;
  name.remove_prefix(prefix.size());
  if (name.size() != stamp_bytes + 1 + random_bytes || name[8] != 'T' || name[15] != 'Z' || name[16] != '-')
    return false;
  for (size_t i = 0; i < name.size(); ++i) {
    if (i == 8 || i == 15 || i == 16) continue;
    bool digit = name[i] >= '0' && name[i] <= '9';
    bool letter = name[i] >= 'a' && name[i] <= 'z';
    if (!digit && !(i > stamp_bytes && letter)) return false;
  }
  return true;
}

bool leaves_enough(const DiskSpace& disk, std::uint64_t needed_bytes, std::uint64_t percent) {
  std::uint64_t reserve = disk.total_bytes / 100 * percent + (disk.total_bytes % 100 * percent + 99) / 100;
  return needed_bytes <= disk.available_bytes && disk.available_bytes - needed_bytes >= reserve;
}

OwnerShift shift_of(const ConfFile& conf, const struct stat& root) {
  std::string_view users = conf.value("PRIVATE_USERS").value_or("no");
  bool shifted = users != "no" && users != "identity" && !users.empty();
  bool is_base = root.st_uid >= shift_unit && root.st_uid % shift_unit == 0;
  return {.base = shifted && is_base ? root.st_uid : 0};
}

std::optional<uid_t> salvage_owner(const Site& site, std::string_view agent, int root, const OwnerShift& shift) {
  if (auto uid = site.settings.uid_of(agent)) return uid;
  UniqueFd home = open_beneath(root, fmt::format("home/{}", agent).c_str(), O_PATH | O_DIRECTORY, Mounts::refuse);
  struct stat status{};
  if (!home || ::fstat(home.get(), &status) != 0) return std::nullopt;
  uid_t owner = shift.back(status.st_uid);
  if (owner == 0 || !site.settings.is_agent_uid(owner)) return std::nullopt;
  return owner;
}

Result<CopyReport> make_salvage(const Site& site, int root, int staging, const ConfFile& conf,
                                const OwnerShift& shift) {
  UniqueFd tree = TRY(make_folder(staging, "tree", 0700));
  UniqueFd links = TRY(make_folder(staging, "links", 0700));
  Exclusions exclusions = exclusions_for(site, conf);
  WalkLimits limits = site.walk_limits();
  CopyOptions options{
      .shift = shift, .may_clone = site.host.may_clone, .admit = [&](std::uint64_t needed) -> Result<bool> {
        DiskSpace disk = TRY(site.host.disk_space(staging));
        return leaves_enough(disk, needed, site.settings.keep_free_percent);
      }};
  auto report = TRY(copy_tree(root, tree.get(), links.get(), exclusions, limits, options));
  TRY(remove_tree(staging, "links", {.max_entries = limits.max_entries}));
  if (report.out_of_space) {
    TRY(remove_tree(staging, "tree", {.max_entries = limits.max_entries}));
    return report;
  }
  // One flush of the file system instead of one for each file; see syncfs(2) on errors.
  if (::syncfs(tree.get()) != 0) return std::unexpected(system_error(errno, "make a salvage durable"));
  return report;
}

Result<bool> has_content(int root) {
  ContentSearch search;
  auto walked =
      walk_tree(root, Exclusions(), {.max_depth = max_skeleton_depth, .max_entries = max_skeleton_entries}, search);
  if (walked) return search.found();
  // Too many folders, or something in the way: nothing that the start of a container makes.
  if (walked.error().code == ErrorCode::resource_exhausted || walked.error().code == ErrorCode::permission_denied) {
    return true;
  }
  return std::unexpected(walked.error());
}

}  // namespace hive::priv
