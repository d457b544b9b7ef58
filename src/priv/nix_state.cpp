#include "priv/nix_state.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

#include "base/strings.h"
#include "priv/beneath.h"
#include "priv/names.h"

namespace hive::priv {

namespace {

constexpr std::string_view store = "/nix/store/";
constexpr std::string_view generation_suffix = "-link";
constexpr size_t max_name = 255;
constexpr WalkLimits state_limits{.max_depth = 6, .max_entries = 20'000};

bool is_plain_name(std::string_view name) {
  return !name.empty() && name.size() <= max_name && name.front() != '.' && std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("+._?=-").find(c) != std::string_view::npos;
  });
}

class ProfileCopy final : public WalkVisitor {
 public:
  ProfileCopy(int destination, uid_t owner, const OwnerShift& shift)
      : top_(destination), owner_(owner), shift_(shift) {}

  [[nodiscard]] const NixReport& report() const { return report_; }

  Result<WalkStep> enter(const WalkEntry& entry) override {
    std::string name(entry.name);
    if (S_ISDIR(entry.status.st_mode) && is_plain_name(name)) {
      folders_.push_back(TRY(profile_folder(here(), name, owner_)));
      return WalkStep::go_on;
    }
    if (!S_ISLNK(entry.status.st_mode) || !is_plain_name(name)) {
      ++report_.skipped;
      return WalkStep::skip;
    }
    std::array<char, PATH_MAX> target;
    ssize_t size = ::readlinkat(entry.fd, "", target.data(), target.size() - 1);
    if (size < 0) return std::unexpected(system_error(errno, "read a link of the nix state"));
    target[static_cast<size_t>(size)] = '\0';
    if (!is_profile_target({target.data(), static_cast<size_t>(size)})) {
      ++report_.skipped;
      return WalkStep::skip;
    }
    if (::symlinkat(target.data(), here(), name.c_str()) != 0) {
      if (errno != EEXIST) return std::unexpected(system_error(errno, "make a link in the nix profile"));
      ++report_.kept;
      return WalkStep::skip;
    }
    UniqueFd made = open_beneath(here(), name.c_str(), O_PATH | O_NOFOLLOW);
    if (!made || ::fchownat(made.get(), "", shift_.back(entry.status.st_uid), shift_.back(entry.status.st_gid),
                            AT_EMPTY_PATH) != 0) {
      return std::unexpected(system_error(errno, "give a link of the nix profile its owner"));
    }
    ++report_.carried;
    return WalkStep::skip;
  }

  Result<void> leave(const WalkEntry&) override {
    TRY(sync_folder(folders_.back().get(), "the nix profile"));
    folders_.pop_back();
    return {};
  }

  // A folder that is made here is the agent's, one that is there stays as it is.
  static Result<UniqueFd> profile_folder(int parent, const std::string& name, uid_t owner) {
    bool was_there = TRY(exists(parent, name));
    UniqueFd folder = TRY(make_folder(parent, name, 0755));
    if (!was_there && ::fchown(folder.get(), owner, owner) != 0) {
      return std::unexpected(system_error(errno, "give a folder of the nix profile its owner"));
    }
    return folder;
  }

 private:
  [[nodiscard]] int here() const { return folders_.empty() ? top_ : folders_.back().get(); }

  int top_;
  uid_t owner_;
  const OwnerShift& shift_;
  std::vector<UniqueFd> folders_;
  NixReport report_;
};

}  // namespace

bool is_profile_target(std::string_view target) {
  if (target.starts_with(store)) return is_plain_name(target.substr(store.size()));
  if (!is_plain_name(target) || !target.ends_with(generation_suffix)) return false;
  target.remove_suffix(generation_suffix.size());
  size_t dash = target.rfind('-');
  return dash != std::string_view::npos && dash > 0 && dash + 1 < target.size() &&
         target.find_first_not_of("0123456789", dash + 1) == std::string_view::npos;
}

Result<NixReport> carry_nix_state(const Site& site, const std::string& container, int root, uid_t owner,
                                  const OwnerShift& shift) {
  std::string agent(agent_of(container));
  UniqueFd source = open_beneath(root, fmt::format("home/{}/.local/state/nix", agent).c_str(), O_RDONLY | O_DIRECTORY,
                                 Mounts::refuse);
  if (!source) {
    // A link means that the state has been moved already.
    if (errno == ENOENT || errno == ENOTDIR || errno == ELOOP) return NixReport{};
    return std::unexpected(system_error(errno, "the nix state of " + container));
  }
  UniqueFd profiles = open_beneath(site.anchor.get(), site.layout.nix_profiles_dir.c_str() + 1, O_RDONLY | O_DIRECTORY);
  if (!profiles && errno == ENOENT) return NixReport{};
  if (!profiles) return std::unexpected(system_error(errno, site.layout.nix_profiles_dir));
  auto copied = [&]() -> Result<NixReport> {
    // 0700: guests have users whose uids are other people's on the host.
    UniqueFd containers = TRY(make_folder(profiles.get(), "per-container", 0700));
    UniqueFd own = TRY(make_folder(containers.get(), container, 0755));
    UniqueFd users = TRY(make_folder(own.get(), "per-user", 0755));
    UniqueFd user = TRY(ProfileCopy::profile_folder(users.get(), agent, owner));
    ProfileCopy copy(user.get(), owner, shift);
    TRY(walk_tree(source.get(), Exclusions(), state_limits, copy));
    TRY(sync_folder(user.get(), "the nix profile"));
    return copy.report();
  }();
  if (!copied) return std::unexpected(with_context(copied.error(), "carry the nix state of " + container));
  return copied;
}

}  // namespace hive::priv
