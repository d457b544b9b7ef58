#include "priv/switch.h"

#include <array>
#include <cerrno>
#include <climits>

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "priv/beneath.h"
#include "priv/machine_id.h"
#include "priv/names.h"
#include "priv/nix_state.h"
#include "priv/salvage.h"

namespace hive::priv {

namespace {

constexpr size_t max_names = 100'000;
constexpr std::chrono::seconds salvage_patience{100};
constexpr std::chrono::seconds switch_patience{5};
constexpr const char* work_folder = "work";

std::string agent_folder(const Site& site, const std::string& container) {
  return fmt::format("{}/{}", site.layout.agents_dir, agent_of(container));
}

// renameat2 that replaces nothing.
Result<void> rename_to_new(int from_folder, const std::string& from, int to_folder, const std::string& to) {
  if (::renameat2(from_folder, from.c_str(), to_folder, to.c_str(), RENAME_NOREPLACE) != 0) {
    return std::unexpected(system_error(errno, fmt::format("rename {} to {}", from, to)));
  }
  TRY(sync_folder(to_folder, to));
  if (from_folder != to_folder) TRY(sync_folder(from_folder, from));
  return {};
}

// What would make the rename of the root fail is found before a long copy, not after it.
Outcome<void> check_movable(const Site& site, const std::string& container, int root) {
  int flags = 0;
  if (::ioctl(root, FS_IOC_GETFLAGS, &flags) == 0 && (flags & (FS_IMMUTABLE_FL | FS_APPEND_FL)) != 0) {
    return std::unexpected(Refusal(Code::unsafe_path,
                                   "the root of " + container + " carries the immutable or the append-only flag",
                                   fmt::format("run: chattr -i -a {}/{}", site.layout.roots_dir, container)));
  }
  if (TRY(is_mount_point(site.roots.get(), root))) {
    return std::unexpected(Refusal(Code::unsafe_path, "the root of " + container + " is a mount point",
                                   "a root is renamed when it is switched; put the mount above it"));
  }
  if (TRY(kept_roots(site, container)).size() >= site.settings.max_kept_roots) {
    return std::unexpected(
        Refusal(Code::limit_reached, fmt::format("{} old roots of {} are kept already; a person must remove one",
                                                 site.settings.max_kept_roots, container)));
  }
  return {};
}

// The link that --link-journal=try-guest has left on the host would dangle; it follows its root. It is a help for
// people who read old journals, so a host where it can't be changed is no reason to stop.
void repoint_journal_link(const Site& site, const std::string& container, const SwitchRecord& record) {
  if (record.guest_id.empty()) return;
  UniqueFd journal = open_beneath(site.anchor.get(), site.layout.journal_dir.c_str() + 1, O_RDONLY | O_DIRECTORY);
  if (!journal) return;
  auto target = [&](const std::string& root) {
    return fmt::format("{}/{}/var/log/journal/{}", site.layout.roots_dir, root, record.guest_id);
  };
  std::array<char, PATH_MAX> current;
  ssize_t size = ::readlinkat(journal.get(), record.guest_id.c_str(), current.data(), current.size());
  if (size < 0 || std::string_view(current.data(), static_cast<size_t>(size)) != target(container)) return;
  std::string temporary = fmt::format(".hive-{}", random_name(8));
  if (::symlinkat(target(record.old_root).c_str(), journal.get(), temporary.c_str()) != 0) return;
  if (::renameat(journal.get(), temporary.c_str(), journal.get(), record.guest_id.c_str()) != 0) {
    ::unlinkat(journal.get(), temporary.c_str(), 0);
  }
}

// Ours to remove, however much there is: a copy has folders above it and names beside it that the tree did not have.
constexpr WalkLimits staging_limits{.max_depth = WalkLimits{}.max_depth + 8, .max_entries = UINT64_MAX};

Result<void> remove_staging(const Site& site, int folder, const std::string& name) {
  WalkLimits limits = staging_limits;
  limits.cancelled = site.host.stopping;
  return remove_tree(folder, name, limits);
}

// Everything after the rename of the old root; each step may have been done before a crash.
Outcome<void> complete(const Site& site, const std::string& container, const SwitchRecord& record) {
  std::string id = TRY(machine_id_of(site, container));
  TRY(write_template_id(site, container, id));
  TRY(sync_folder(site.roots.get(), "the folder of the roots"));
  site.host.at_step(SwitchStep::root_made);
  repoint_journal_link(site, container, record);
  UniqueFd folder = TRY(open_trusted_folder(site.anchor.get(), agent_folder(site, container)));
  if (record.kind == SalvageKind::done) {
    UniqueFd staging = open_beneath(folder.get(), record.staging.c_str(), O_RDONLY | O_DIRECTORY);
    // Only what is surely not there was moved before: any other failure would have the copy removed below.
    if (!staging && errno != ENOENT) return std::unexpected(system_error(errno, record.staging));
    if (staging && TRY(exists(staging.get(), "tree"))) {
      UniqueFd work = open_beneath(folder.get(), work_folder, O_RDONLY | O_DIRECTORY);
      if (!work) return std::unexpected(system_error(errno, agent_folder(site, container) + "/work"));
      TRY(rename_to_new(staging.get(), "tree", work.get(), record.salvage));
    }
  }
  site.host.at_step(SwitchStep::salvage_moved);
  TRY(remove_staging(site, folder.get(), record.staging));
  return {};
}

class Switch {
 public:
  Switch(const Site& site, const std::string& container, const ConfFile& conf)
      : site_(site), container_(container), conf_(conf) {}

  Outcome<SwitchRecord> run() {
    root_ = open_beneath(site_.roots.get(), container_.c_str(), O_RDONLY | O_DIRECTORY);
    if (!root_) return std::unexpected(system_error(errno, container_));
    TRY(check_movable(site_, container_, root_.get()));
    UniqueFd image_lock = TRY(lock_image(site_.roots.get(), container_));
    UniqueFd switch_lock = TRY(site_.lock(switch_lock_name(container_), switch_patience));
    // systemd may have begun to start the unit since the request came; check-rootfs refuses it from here on.
    if (is_running(TRY(site_.host.units.active_state(container_)))) {
      return refuse(Code::busy, "{} runs; stop it first", container_);
    }
    agent_folder_ = TRY(open_trusted_folder(site_.anchor.get(), agent_folder(site_, container_)));
    UniqueFd work = open_beneath(agent_folder_.get(), work_folder, O_RDONLY | O_DIRECTORY);
    if (!work) {
      return std::unexpected(Refusal(
          Code::unsafe_path, fmt::format("agent {} has no folder \"work\" for its salvage", agent_of(container_)),
          system_error(errno, agent_folder(site_, container_) + "/work").message));
    }
    name_everything();
    TRY(save_record(site_, container_, record_));
    site_.host.at_step(SwitchStep::recorded);
    auto prepared = prepare();
    if (!prepared) {
      TRY(take_back());
      return std::unexpected(prepared.error());
    }
    if (auto renamed = rename_to_new(site_.roots.get(), container_, site_.roots.get(), record_.old_root); !renamed) {
      // Renamed but not known to be durable: the next request finds out which of the two names is left.
      if (!TRY(exists(site_.roots.get(), record_.old_root))) TRY(take_back());
      return std::unexpected(renamed.error());
    }
    site_.host.at_step(SwitchStep::root_renamed);
    TRY(complete(site_, container_, record_));
    ::unlinkat(site_.roots.get(), fmt::format(".#{}.lck", container_).c_str(), 0);
    return record_;
  }

 private:
  void name_everything() {
    std::string suffix = time_suffix(site_.host.clock.wall_now());
    record_.staging = fmt::format("{}{}", staging_prefix, suffix);
    record_.salvage = fmt::format("{}{}", salvage_prefix, suffix);
    record_.old_root = fmt::format("{}{}{}", container_, old_root_mark, suffix);
    record_.guest_id = template_id(site_.roots.get(), container_).value_or(std::string());
  }

  // Everything before the rename: nothing of it changes the old root.
  Outcome<void> prepare() {
    struct stat status{};
    if (::fstat(root_.get(), &status) != 0) return std::unexpected(system_error(errno, container_));
    OwnerShift shift = shift_of(conf_, status);
    uid_t owner = salvage_owner(site_, agent_of(container_), root_.get(), shift).value_or(0);
    {
      // One at a time: two copies would share the disk's speed and both believe in the same free space.
      UniqueFd salvage_lock = TRY(site_.lock("salvage", salvage_patience));
      TRY(copy(shift, owner));
    }
    site_.host.at_step(SwitchStep::copied);
    NixReport nix = TRY(carry_nix_state(site_, container_, root_.get(), owner, shift));
    record_.nix_links = nix.carried;
    site_.host.at_step(SwitchStep::nix_carried);
    TRY(machine_id_of(site_, container_));
    site_.host.at_step(SwitchStep::id_noted);
    record_.ready = true;
    TRY(save_record(site_, container_, record_));
    site_.host.at_step(SwitchStep::ready);
    return {};
  }

  Outcome<void> copy(const OwnerShift& shift, uid_t owner) {
    if (::mkdirat(agent_folder_.get(), record_.staging.c_str(), 0700) != 0) {
      return std::unexpected(system_error(errno, "make folder " + record_.staging));
    }
    UniqueFd staging = open_beneath(agent_folder_.get(), record_.staging.c_str(), O_RDONLY | O_DIRECTORY);
    if (!staging) return std::unexpected(system_error(errno, record_.staging));
    site_.host.at_step(SwitchStep::staged);
    CopyReport report = TRY(make_salvage(site_, root_.get(), staging.get(), conf_, shift));
    if (report.out_of_space) {
      record_.kind = SalvageKind::skipped_low_disk;
      return {};
    }
    UniqueFd tree = open_beneath(staging.get(), "tree", O_RDONLY | O_DIRECTORY);
    if (!tree || ::fchown(tree.get(), owner, owner) != 0 || ::fsync(tree.get()) != 0) {
      return std::unexpected(system_error(errno, "give the salvage its owner"));
    }
    record_.kind = SalvageKind::done;
    record_.bytes = report.bytes;
    record_.entries = report.entries;
    record_.skipped_special = report.skipped_special;
    record_.changed = report.changed;
    record_.cloned_files = report.cloned_files;
    return {};
  }

  Result<void> take_back() {
    // Also when hive-priv is told to stop.
    TRY(remove_tree(agent_folder_.get(), record_.staging, staging_limits));
    return remove_record(site_, container_);
  }

  const Site& site_;
  const std::string& container_;
  const ConfFile& conf_;
  SwitchRecord record_;
  UniqueFd root_;
  UniqueFd agent_folder_;
};

}  // namespace

Result<bool> needs_switch(const Site& site, const std::string& container, const ConfFile& conf) {
  if (conf.is_ephemeral()) return false;
  UniqueFd root = open_beneath(site.roots.get(), container.c_str(), O_RDONLY | O_DIRECTORY);
  if (!root && errno == ENOENT) return false;
  if (!root && (errno == ELOOP || errno == ENOTDIR)) {
    return fail(ErrorCode::permission_denied, "{}/{} is not a directory", site.layout.roots_dir, container);
  }
  if (!root) return std::unexpected(system_error(errno, container));
  return has_content(root.get());
}

Outcome<SwitchRecord> switch_root(const Site& site, const std::string& container, const ConfFile& conf) {
  return Switch(site, container, conf).run();
}

Outcome<std::optional<SwitchRecord>> recover_switch(const Site& site, const std::string& container) {
  auto record = TRY(load_record(site, container));
  if (!record) return std::nullopt;
  UniqueFd switch_lock = TRY(site.lock(switch_lock_name(container), switch_patience));
  if (is_running(TRY(site.host.units.active_state(container)))) {
    return refuse(Code::busy, "{} runs, and its switch isn't finished; stop it first", container);
  }
  if (TRY(exists(site.roots.get(), record->old_root))) {
    TRY(complete(site, container, *record));
    return record;
  }
  // The old root still has its name, and may have changed since: the copy is made anew.
  UniqueFd folder = TRY(open_trusted_folder(site.anchor.get(), agent_folder(site, container)));
  TRY(remove_staging(site, folder.get(), record->staging));
  TRY(remove_record(site, container));
  return std::nullopt;
}

Result<void> finish_switch(const Site& site, const std::string& container) {
  TRY(remove_record(site, container));
  site.host.at_step(SwitchStep::record_removed);
  return {};
}

Result<std::vector<std::string>> kept_roots(const Site& site, const std::string& container) {
  return list_names(site.roots.get(), max_names, fmt::format("{}{}", container, old_root_mark));
}

}  // namespace hive::priv
