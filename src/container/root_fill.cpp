#include "container/root_fill.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/unique_fd.h"
#include "container/program.h"

namespace hive::container {

namespace {

// What the start step and hive-priv make in an empty root, and no more.
constexpr auto skeleton = std::to_array<std::string_view>({
    "etc",
    "etc/machine-id",
    "etc/os-release",
    "etc/resolv.conf",
    "root",
    "usr",
    "usr/bin",
    "var",
    "var/lib",
    "var/lib/private",
    "var/log",
    "var/log/journal",
});
constexpr size_t machine_id_bytes = 32;

/// Opens a path below `folder` that must hold no link in any component; -1 and errno otherwise.
UniqueFd open_beneath(int folder, const char* path, std::uint64_t flags) {
  open_how how{};
  how.flags = flags | O_CLOEXEC;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV;
  return UniqueFd(static_cast<int>(::syscall(SYS_openat2, folder, path, &how, sizeof how)));
}

struct CloseDir {
  void operator()(DIR* folder) const { ::closedir(folder); }
};

/// Whether a folder holds nothing but parts of the skeleton. `path` is where it lies below the root, with a final
/// slash; empty for the root itself. The depth is that of the skeleton.
Result<bool> is_skeleton(int root, const std::string& path) {
  UniqueFd fd = open_beneath(root, path.empty() ? "." : path.c_str(), O_RDONLY | O_DIRECTORY);
  if (!fd) return std::unexpected(system_error(errno, path));
  std::unique_ptr<DIR, CloseDir> folder(::fdopendir(fd.get()));
  if (!folder) return std::unexpected(system_error(errno, path));
  (void)fd.release();  // closedir closes it
  errno = 0;
  while (const dirent* entry = ::readdir(folder.get())) {
    const std::string_view name = entry->d_name;
    if (name == "." || name == "..") continue;
    const std::string inner = path + std::string(name);
    if (std::ranges::find(skeleton, inner) == skeleton.end()) return false;
    struct stat status{};
    if (::fstatat(::dirfd(folder.get()), entry->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0) {
      return std::unexpected(system_error(errno, inner));
    }
    if (S_ISDIR(status.st_mode) && !TRY(is_skeleton(root, inner + "/"))) return false;
    errno = 0;
  }
  if (errno != 0) return std::unexpected(system_error(errno, path));
  return true;
}

/// The machine id in a root; nullopt when there is none that could be taken over.
std::optional<std::string> machine_id_of(int root) {
  UniqueFd file = open_beneath(root, "etc/machine-id", O_RDONLY | O_NONBLOCK);
  struct stat status{};
  if (!file || ::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) return std::nullopt;
  char buffer[machine_id_bytes];
  if (::read(file.get(), buffer, sizeof buffer) != ssize_t{sizeof buffer}) return std::nullopt;
  std::string id(buffer, sizeof buffer);
  bool fits = std::ranges::all_of(id, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
  return fits ? std::optional(id) : std::nullopt;
}

Result<void> write_machine_id(int root, const std::string& id) {
  open_how how{};
  how.flags = O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC;
  how.mode = 0444;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
  UniqueFd file(static_cast<int>(::syscall(SYS_openat2, root, "etc/machine-id", &how, sizeof how)));
  const std::string line = id + "\n";
  if (!file || ::write(file.get(), line.data(), line.size()) != static_cast<ssize_t>(line.size())) {
    return std::unexpected(system_error(errno, "etc/machine-id of the template's copy"));
  }
  return {};
}

Result<void> replace_root(int roots, const std::string& copy, const std::string& name, bool exists) {
  const unsigned flags = exists ? RENAME_EXCHANGE : RENAME_NOREPLACE;
  if (::renameat2(roots, copy.c_str(), roots, name.c_str(), flags) != 0) {
    return std::unexpected(system_error(errno, name));
  }
  if (::fsync(roots) != 0) return std::unexpected(system_error(errno, "roots"));
  return {};
}

}  // namespace

Result<void> fill_root(std::string_view container, const Layout& layout) {
  const std::string name(container);
  const std::string root_path = layout.root(name);
  UniqueFd roots(::open(layout.roots().c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!roots) return std::unexpected(system_error(errno, layout.roots()));
  UniqueFd root = open_beneath(roots.get(), name.c_str(), O_RDONLY | O_DIRECTORY);
  const bool exists = root.is_open();
  if (!exists && errno != ENOENT) return std::unexpected(system_error(errno, root_path));
  // nspawn takes a folder for a system when it has usr; ours also needs what is in there.
  if (exists && open_beneath(root.get(), "usr/lib", O_PATH | O_DIRECTORY).is_open()) return {};
  if (exists && !TRY_CONTEXT(root_path, is_skeleton(root.get(), ""))) {
    return fail(ErrorCode::invalid_argument,
                "{} holds files but no system to boot; move it away, and the next start makes it from the template",
                root_path);
  }
  const std::string template_path = layout.template_root(name);
  if (::access((template_path + "/usr/lib").c_str(), F_OK) != 0) {
    return fail(ErrorCode::not_found, "{} holds no system to boot, and there is no template for it in {}", root_path,
                template_path);
  }

  const std::string copy = ".hive-fill." + name;
  const std::string copy_path = layout.roots() + "/" + copy;
  // Of a start that was killed. Only root could put anything there.
  TRY(must_run({"rm", "-rf", "--one-file-system", "--", copy_path}));
  TRY(must_run({"cp", "-a", "--reflink=auto", "--one-file-system", "--", template_path, copy_path}));
  UniqueFd filled = open_beneath(roots.get(), copy.c_str(), O_RDONLY | O_DIRECTORY);
  if (!filled) return std::unexpected(system_error(errno, copy_path));
  if (std::optional<std::string> id = exists ? machine_id_of(root.get()) : std::nullopt) {
    TRY(write_machine_id(filled.get(), *id));
  }
  if (::syncfs(filled.get()) != 0) return std::unexpected(system_error(errno, copy_path));
  TRY_CONTEXT(root_path, replace_root(roots.get(), copy, name, exists));
  // The skeleton, now under the copy's name.
  return must_run({"rm", "-rf", "--one-file-system", "--", copy_path});
}

}  // namespace hive::container
