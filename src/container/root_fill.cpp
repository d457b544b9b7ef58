#include "container/root_fill.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>
#include <string>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/unique_fd.h"
#include "container/program.h"
#include "priv/beneath.h"

namespace hive::container {

namespace {

using priv::Mounts;
using priv::open_beneath;

// What the start step and hive-priv make in an empty root, and no more.
constexpr auto skeleton_folders = std::to_array<std::string_view>(
    {"etc", "root", "usr", "usr/bin", "var", "var/lib", "var/lib/private", "var/log", "var/log/journal"});
// As files or as links, which nothing here follows.
constexpr auto skeleton_files =
    std::to_array<std::string_view>({"etc/machine-id", "etc/os-release", "etc/resolv.conf"});
constexpr size_t machine_id_bytes = 32;
constexpr size_t max_folder_entries = 1024;

/// Whether a folder holds nothing but parts of the skeleton. `path` is where it lies below the root, with a final
/// slash; empty for the root itself. The depth is that of the skeleton.
Result<bool> is_skeleton(int root, const std::string& path) {
  UniqueFd folder = open_beneath(root, path.empty() ? "." : path.c_str(), O_RDONLY | O_DIRECTORY, Mounts::refuse);
  if (!folder) return std::unexpected(system_error(errno, path));
  for (const std::string& name : TRY(priv::list_names(folder.get(), max_folder_entries))) {
    const std::string inner = path + name;
    const bool is_file = std::ranges::find(skeleton_files, inner) != skeleton_files.end();
    if (!is_file && std::ranges::find(skeleton_folders, inner) == skeleton_folders.end()) return false;
    struct stat status{};
    if (::fstatat(folder.get(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) {
      return std::unexpected(system_error(errno, inner));
    }
    if (is_file == S_ISDIR(status.st_mode)) return false;
    if (!is_file && !TRY(is_skeleton(root, inner + "/"))) return false;
  }
  return true;
}

/// The machine id in a root; nullopt when there is none that could be taken over.
std::optional<std::string> machine_id_of(int root) {
  UniqueFd file = open_beneath(root, "etc/machine-id", O_RDONLY | O_NONBLOCK, Mounts::refuse);
  struct stat status{};
  if (!file || ::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) return std::nullopt;
  char buffer[machine_id_bytes];
  if (::read(file.get(), buffer, sizeof buffer) != ssize_t{sizeof buffer}) return std::nullopt;
  std::string id(buffer, sizeof buffer);
  bool fits = std::ranges::all_of(id, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
  return fits ? std::optional(id) : std::nullopt;
}

Result<void> write_machine_id(int root, const std::string& id) {
  UniqueFd folder = open_beneath(root, "etc", O_RDONLY | O_DIRECTORY, Mounts::refuse);
  if (!folder) return std::unexpected(system_error(errno, "etc of the template's copy"));
  return priv::replace_file(folder.get(), "machine-id", id + "\n", 0444);
}

Result<void> replace_root(int roots, const std::string& copy, const std::string& name, bool exists) {
  const unsigned flags = exists ? RENAME_EXCHANGE : RENAME_NOREPLACE;
  if (::renameat2(roots, copy.c_str(), roots, name.c_str(), flags) != 0) {
    return std::unexpected(system_error(errno, name));
  }
  return priv::sync_folder(roots, name);
}

}  // namespace

Result<void> fill_root(std::string_view container, const Layout& layout) {
  const std::string name(container);
  const std::string root_path = layout.root(name);
  UniqueFd roots(::open(layout.roots().c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!roots) return std::unexpected(system_error(errno, layout.roots()));
  UniqueFd root = open_beneath(roots.get(), name.c_str(), O_RDONLY | O_DIRECTORY, Mounts::refuse);
  const bool exists = root.is_open();
  if (!exists && errno != ENOENT) return std::unexpected(system_error(errno, root_path));
  // nspawn takes a folder for a system when it has usr; ours also needs what is in there.
  if (exists && open_beneath(root.get(), "usr/lib", O_PATH | O_DIRECTORY, Mounts::refuse).is_open()) return {};
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
  UniqueFd filled = open_beneath(roots.get(), copy.c_str(), O_RDONLY | O_DIRECTORY, Mounts::refuse);
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
