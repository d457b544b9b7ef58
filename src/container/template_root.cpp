#include "container/template_root.h"

#include <array>
#include <cerrno>
#include <filesystem>
#include <system_error>

#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/strings.h"
#include "container/names.h"
#include "container/program.h"

namespace hive::container {

namespace {

namespace fs = std::filesystem;

constexpr size_t max_small_file = 64 << 10;
// What a container needs to boot, to have a network, and to be looked into.
constexpr std::string_view needed_packages = "systemd,systemd-sysv,dbus,iproute2,ca-certificates";

/// VERSION_CODENAME of the host's os-release.
Result<std::string> host_suite() {
  const std::string text = TRY(read_file("/etc/os-release", max_small_file));
  for (std::string_view line : split(text, '\n')) {
    if (line.starts_with("VERSION_CODENAME=")) return std::string(trim(line.substr(line.find('=') + 1)));
  }
  return fail(ErrorCode::not_found, "/etc/os-release names no release of Debian; give --suite, --tree or --tarball");
}

Result<void> debootstrap(const RootSource& source, const std::string& folder) {
  std::string packages(needed_packages);
  for (const std::string& package : source.packages)
    packages += "," + package;
  std::vector<std::string> command{"debootstrap", "--variant=minbase", "--include=" + packages,
                                   source.suite.empty() ? TRY(host_suite()) : source.suite, folder};
  if (!source.mirror.empty()) command.push_back(source.mirror);
  TRY(must_run(command, {"http_proxy", "https_proxy", "no_proxy"}));
  // The packages themselves, 40 MB that every copy of the template would hold.
  return must_run({"chroot", folder, "apt-get", "clean"});
}

Result<void> unpack(const RootSource& source, const std::string& folder) {
  if (!source.tree.empty()) {
    if (::access((source.tree + "/usr/lib").c_str(), F_OK) != 0) {
      return fail(ErrorCode::invalid_argument, "--tree {}: holds no system (there is no usr/lib in it)", source.tree);
    }
    // The folder itself under its new name, so that nothing of the tree can be taken for an option.
    return must_run({"cp", "-a", "--reflink=auto", "--one-file-system", "--", source.tree, folder});
  }
  if (source.tarball.empty()) return debootstrap(source, folder);
  if (::mkdir(folder.c_str(), 0755) != 0) return std::unexpected(system_error(errno, folder));
  return must_run({"tar", "--extract", "--file=" + source.tarball, "--directory=" + folder, "--numeric-owner",
                   "--xattrs", "--xattrs-include=*", "--acls"});
}

Result<void> write_into(const std::string& root, const std::string& path, std::string_view content) {
  std::error_code error;
  fs::create_directories(fs::path(root + path).parent_path(), error);
  if (error) return std::unexpected(system_error(error.value(), root + path));
  return write_file_atomically(root + path, content, 0644);
}

Result<void> remove_in(const std::string& path) {
  std::error_code error;
  fs::remove_all(path, error);
  if (error) return std::unexpected(system_error(error.value(), path));
  return {};
}

// Where something is written or removed below a template. With a link there it would happen to the host.
constexpr auto touched_folders = std::to_array<std::string_view>(
    {"dev", "etc", "etc/systemd", "etc/systemd/journald.conf.d", "etc/systemd/system",
     "etc/systemd/system/myrmex-agent.service.d", "etc/systemd/system/hive-journal-forwarder.service.d",
     "etc/myrmex-agent", "home", "usr", "usr/bin", "usr/lib", "usr/lib/systemd", "usr/lib/systemd/system", "var",
     "var/lib", "var/lib/dbus", "var/log"});

/// What clones must not share, and what no copy of a template may hold.
Result<void> make_anonymous(const std::string& root) {
  std::error_code error;
  for (fs::directory_iterator at(root + "/dev", error), end; !error && at != end; at.increment(error))
    TRY(remove_in(at->path().string()));
  // debootstrap's is an ordinary file, and a guest would take that id before every other, the same in every clone.
  TRY(remove_in(root + "/var/lib/dbus/machine-id"));
  TRY(remove_in(root + "/etc/machine-id"));
  TRY(write_into(root, "/etc/machine-id", ""));
  TRY(remove_in(root + "/var/log/journal"));
  // A link to systemd-resolved's file would dangle in the guest; the start helper binds a file of its own here.
  TRY(remove_in(root + "/etc/resolv.conf"));
  return write_into(root, "/etc/resolv.conf", "");
}

Result<void> add_user(const std::string& root, const Record& record) {
  const std::string agent(agent_of(record.name));
  const std::string uid = std::to_string(record.uid);
  TRY(must_run({"chroot", root, "groupadd", "--gid", uid, agent}));
  TRY(must_run({"chroot", root, "useradd", "--uid", uid, "--gid", uid, "--create-home", "--home-dir", "/home/" + agent,
                "--shell", "/bin/bash", "--comment", "agent", agent}));
  const std::string claude = root + "/home/" + agent + "/.claude";
  if (::mkdir(claude.c_str(), 0700) != 0 || ::lchown(claude.c_str(), record.uid, record.uid) != 0) {
    return std::unexpected(system_error(errno, claude));
  }
  return {};
}

}  // namespace

Result<void> check_template(const std::string& folder) {
  for (std::string_view inner : touched_folders) {
    const std::string path = fmt::format("{}/{}", folder, inner);
    struct stat status{};
    if (::lstat(path.c_str(), &status) != 0) {
      if (errno == ENOENT) continue;
      return std::unexpected(system_error(errno, path));
    }
    if (!S_ISDIR(status.st_mode)) {
      return fail(ErrorCode::invalid_argument, "the system is refused: /{} in it is no folder", inner);
    }
  }
  return {};
}

Result<void> make_template(const RootSource& source, const Record& record, const std::string& folder) {
  TRY(unpack(source, folder));
  TRY(check_template(folder));
  TRY(make_anonymous(folder));
  TRY(write_into(folder, "/etc/hostname", record.name + "\n"));
  TRY(write_into(folder, "/etc/systemd/journald.conf.d/50-hive.conf",
                 "# The forwarder reads /var/log/journal, which journald writes only when told so.\n"
                 "[Journal]\nStorage=persistent\n"));
  TRY(must_run({"chroot", folder, "systemctl", "--quiet", "enable", "systemd-networkd.service"}));
  // Nobody sits at its console.
  TRY(must_run({"chroot", folder, "systemctl", "--quiet", "mask", "console-getty.service"}));
  return add_user(folder, record);
}

}  // namespace hive::container
