#include "priv/site.h"

#include <cerrno>
#include <thread>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/statvfs.h>

#include "priv/beneath.h"

namespace hive::priv {

namespace {

constexpr std::chrono::milliseconds lock_poll{5};

std::string state_path(const Layout& layout, const std::string& name) {
  return layout.state_dir + "/" + name;
}

}  // namespace

Result<DiskSpace> measure_disk(int folder) {
  struct statvfs status{};
  if (::fstatvfs(folder, &status) != 0) return std::unexpected(system_error(errno, "measure a disk"));
  return DiskSpace{.total_bytes = std::uint64_t{status.f_blocks} * status.f_frsize,
                   .available_bytes = std::uint64_t{status.f_bavail} * status.f_frsize};
}

Result<Site> Site::open(const Layout& layout, const Settings& settings, Host& host) {
  UniqueFd anchor = TRY(open_anchor(layout));
  UniqueFd conf = TRY(open_trusted_folder(anchor.get(), layout.conf_dir));
  UniqueFd roots = TRY(open_trusted_folder(anchor.get(), layout.roots_dir));
  UniqueFd state = TRY(open_trusted_folder(anchor.get(), layout.state_dir));
  return Site{.layout = layout,
              .settings = settings,
              .host = host,
              .anchor = std::move(anchor),
              .conf = std::move(conf),
              .roots = std::move(roots),
              .state = std::move(state)};
}

WalkLimits Site::walk_limits() const {
  return {.max_entries = settings.max_salvage_entries,
          .deadline = system_clock().steady_now() + settings.max_salvage_time,
          .cancelled = host.stopping};
}

Result<UniqueFd> Site::state_folder(const std::string& name) const {
  return TRY_CONTEXT(layout.state_dir, make_folder(state.get(), name, 0700));
}

Result<UniqueFd> Site::lock(const std::string& name, std::chrono::milliseconds patience) const {
  UniqueFd folder = TRY(state_folder("locks"));
  UniqueFd file = open_beneath(folder.get(), name.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW, Mounts::enter, 0600);
  if (!file) return std::unexpected(system_error(errno, "open lock " + name));
  SteadyTime deadline = system_clock().steady_now() + patience;
  // flock has no form with a deadline, and a signal to cut a waiting one short would be worse than looking again.
  while (::flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) return std::unexpected(system_error(errno, "lock " + name));
    if (system_clock().steady_now() >= deadline || (host.stopping != nullptr && host.stopping->load())) {
      return fail(ErrorCode::unavailable, "lock {} is held by another request", name);
    }
    std::this_thread::sleep_for(lock_poll);
  }
  return file;
}

std::string switch_lock_name(std::string_view container) {
  return fmt::format("{}.switch", container);
}

Result<bool> is_locked(int anchor, const Layout& layout, const std::string& name) {
  std::string path = state_path(layout, "locks/" + name);
  UniqueFd file = open_beneath(anchor, path.c_str() + 1, O_RDONLY);
  if (!file && errno == ENOENT) return false;
  if (!file) return std::unexpected(system_error(errno, path));
  if (::flock(file.get(), LOCK_SH | LOCK_NB) == 0) return false;
  if (errno == EWOULDBLOCK) return true;
  return std::unexpected(system_error(errno, path));
}

Result<UniqueFd> lock_image(int roots, const std::string& name) {
  std::string file = fmt::format(".#{}.lck", name);
  UniqueFd fd = open_beneath(roots, file.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW, Mounts::enter, 0600);
  if (!fd) return std::unexpected(system_error(errno, file));
  struct flock lock{};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  if (::fcntl(fd.get(), F_OFD_SETLK, &lock) != 0) {
    if (errno == EAGAIN || errno == EACCES) return fail(ErrorCode::unavailable, "{} is held: the root is in use", file);
    return std::unexpected(system_error(errno, file));
  }
  return fd;
}

}  // namespace hive::priv
