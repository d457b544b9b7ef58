#include "priv/check_rootfs.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <string_view>

#include <fcntl.h>
#include <sys/stat.h>

#include "base/strings.h"
#include "priv/beneath.h"
#include "priv/bind_rules.h"
#include "priv/container_conf.h"
#include "priv/names.h"
#include "priv/switch.h"

namespace hive::priv {

namespace {

enum class Wanted { folder, file, no_link };

struct CheckedPath {
  const char* path;
  Wanted wanted;
  bool agents_only = false;  ///< only for agents' containers, whose journal the host reads
};

// What the start makes, changes or reads. Links that an honest guest has, etc/os-release and etc/resolv.conf above all,
// are not touched by it and stand in no row.
constexpr std::array checked_paths = {
    CheckedPath{"etc", Wanted::folder},
    CheckedPath{"etc/machine-id", Wanted::file},
    CheckedPath{"var", Wanted::folder},
    CheckedPath{"var/lib", Wanted::folder},
    CheckedPath{"var/lib/private", Wanted::folder},
    CheckedPath{"usr", Wanted::folder},
    CheckedPath{"usr/bin", Wanted::folder},
    CheckedPath{"root", Wanted::folder},
    CheckedPath{"var/log", Wanted::no_link, true},
    CheckedPath{"var/log/journal", Wanted::no_link, true},
};

class Check {
 public:
  Check(const Layout& layout, const Settings& settings, const std::string& container)
      : layout_(layout), settings_(settings), container_(container) {}

  Result<RootfsFindings> run() {
    anchor_ = TRY(open_anchor(layout_));
    TRY(check_switch());
    UniqueFd roots = TRY(open_folder(anchor_.get(), layout_.roots_dir));
    root_path_ = layout_.shown(layout_.roots_dir + "/" + container_);
    UniqueFd root = open_beneath(roots.get(), container_.c_str(), O_PATH | O_NOFOLLOW);
    if (!root && errno != ENOENT) return std::unexpected(system_error(errno, root_path_));
    if (root && TRY(look_at(root.get(), root_path_, Wanted::folder))) {
      for (const CheckedPath& checked : checked_paths) {
        if (checked.agents_only && !is_agent_container(container_)) continue;
        TRY(check_path(root.get(), checked));
      }
    }
    if (is_agent_container(container_)) TRY(check_configuration());
    return std::move(findings_);
  }

 private:
  // Goes down name by name: what stands above the path was checked by a row before, or is looked at here.
  Result<void> check_path(int root, const CheckedPath& checked) {
    UniqueFd folder;
    int at = root;
    std::vector<std::string_view> parts = split(checked.path, '/');
    for (size_t i = 0; i < parts.size(); ++i) {
      std::string name(parts[i]);
      UniqueFd entry = open_beneath(at, name.c_str(), O_PATH | O_NOFOLLOW);
      if (!entry && errno == ENOENT) return {};
      if (!entry) return std::unexpected(system_error(errno, root_path_ + "/" + checked.path));
      if (i + 1 < parts.size()) {
        struct stat status{};
        if (::fstat(entry.get(), &status) != 0) return std::unexpected(system_error(errno, root_path_));
        // Reported by its own row.
        if (!S_ISDIR(status.st_mode)) return {};
      } else {
        TRY(look_at(entry.get(), root_path_ + "/" + checked.path, checked.wanted));
      }
      folder = std::move(entry);
      at = folder.get();
    }
    return {};
  }

  // True if it is what it should be.
  Result<bool> look_at(int fd, const std::string& path, Wanted wanted) {
    struct stat status{};
    if (::fstat(fd, &status) != 0) return std::unexpected(system_error(errno, path));
    if (S_ISLNK(status.st_mode)) return refuse_start(path + " is a symlink");
    if (wanted == Wanted::folder && !S_ISDIR(status.st_mode)) return refuse_start(path + " is not a directory");
    if (wanted == Wanted::file && !S_ISREG(status.st_mode)) return refuse_start(path + " is not a regular file");
    if (wanted == Wanted::no_link) return true;
    if (path == root_path_) root_owner_ = status.st_uid;
    // With a user namespace the whole root belongs to a shifted uid.
    if (status.st_uid != 0 && status.st_uid != root_owner_) {
      findings_.warnings.push_back(fmt::format("{} is owned by uid {}", path, status.st_uid));
    }
    if ((status.st_mode & 022) != 0) {
      findings_.warnings.push_back(
          fmt::format("{} may be written by group or others (mode {:04o})", path, status.st_mode & 07777));
    }
    return true;
  }

  bool refuse_start(std::string why) {
    findings_.refusals.push_back(std::move(why));
    return false;
  }

  Result<void> check_switch() {
    if (TRY(is_locked(anchor_.get(), layout_, switch_lock_name(container_)))) {
      refuse_start(container_ + " is being switched to an ephemeral root; start it when that is done");
    }
    return {};
  }

  // nspawn opens the sources of binds again by their paths.
  Result<void> check_configuration() {
    std::string shown = layout_.shown(fmt::format("{}/{}.conf", layout_.conf_dir, container_));
    auto opened = open_trusted_folder(anchor_.get(), layout_.conf_dir);
    if (!opened && opened.error().code == ErrorCode::not_found) return {};
    UniqueFd conf_dir = TRY(std::move(opened));
    if (!TRY(exists(conf_dir.get(), container_ + ".conf"))) return {};
    ConfFile conf = TRY(read_container_conf(conf_dir.get(), layout_, container_));
    // Written by others, NixOS for one; the rules for callers on the socket are not theirs.
    if (!conf.is_ephemeral()) return {};
    auto extra = TRY(read_extra_flags(conf_dir.get(), layout_, container_));
    auto sources = settings_.sources_of(agent_of(container_));
    for (std::string_view flag : conf.nspawn_flags()) {
      if (std::ranges::find(extra, flag) != extra.end()) continue;
      size_t equals = flag.find('=');
      std::string_view name = flag.substr(0, equals);
      if (name != "--bind" && name != "--bind-ro") continue;
      if (equals == std::string_view::npos) {
        refuse_start(shown + ": --bind without a value");
        continue;
      }
      std::string_view value = flag.substr(equals + 1);
      std::string source(value.substr(0, value.find(':')));
      bool allowed =
          check_plain_path(source) && !belongs_to_the_host(source, layout_) && !settings_.shared_folder_above(source) &&
          std::ranges::any_of(sources, [&](const std::string& folder) { return is_at_or_below(source, folder); });
      if (!allowed) {
        refuse_start(
            fmt::format("{}: bind source {} is not a folder that {} may have", shown, quote(source), container_));
      } else if (auto good = check_bind_source(anchor_.get(), source); !good) {
        refuse_start("bind source " + good.error().message);
      }
    }
    return {};
  }

  const Layout& layout_;
  const Settings& settings_;
  const std::string& container_;
  RootfsFindings findings_;
  UniqueFd anchor_;
  std::string root_path_;
  uid_t root_owner_ = 0;
};

}  // namespace

Result<RootfsFindings> check_rootfs(const Layout& layout, const Settings& settings, const std::string& container) {
  TRY(check_any_container(container));
  return Check(layout, settings, container).run();
}

}  // namespace hive::priv
