#include "priv/beneath.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <memory>

#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "base/strings.h"

namespace hive::priv {

namespace {

constexpr int max_tries = 100;

UniqueFd open_with(int folder, const char* path, int flags, mode_t mode, std::uint64_t resolve) {
  open_how how{};
  how.flags = static_cast<std::uint64_t>(flags | O_CLOEXEC);
  how.mode = mode;
  how.resolve = resolve;
  for (int tries = 0;; ++tries) {
    auto fd = static_cast<int>(::syscall(SYS_openat2, folder, path, &how, sizeof how));
    // The kernel gives up when something moves while it looks; openat2(2) says to try again.
    if (fd < 0 && (errno == EAGAIN || errno == EINTR) && tries < max_tries) continue;
    return UniqueFd(fd);
  }
}

// The openat2 errors that mean "somebody put something in the way" are told apart from those of the disk.
Error open_error(int error, std::string_view what) {
  switch (error) {
    case ELOOP:
      return {ErrorCode::permission_denied, fmt::format("{} is a symlink, or leads through one", what)};
    case EXDEV:
      return {ErrorCode::permission_denied, fmt::format("{} is a mount point, or leads out of its folder", what)};
    case ENOTDIR:
      return {ErrorCode::permission_denied, fmt::format("{} is not a directory", what)};
    case ENOSYS:
      return {ErrorCode::internal, "this kernel has no openat2; hive-priv needs Linux 5.6 or later"};
    default:
      return system_error(error, what);
  }
}

const char* relative(const std::string& path) {
  return path == "/" ? "." : path.c_str() + (path.starts_with('/') ? 1 : 0);
}

Result<void> check_trusted(int fd, std::string_view path) {
  struct stat status{};
  if (::fstat(fd, &status) != 0) return std::unexpected(system_error(errno, path));
  if (status.st_uid != 0) {
    return fail(ErrorCode::permission_denied, "{} belongs to uid {}, not to root", path, status.st_uid);
  }
  if ((status.st_mode & 022) != 0) {
    return fail(ErrorCode::permission_denied, "{} may be written by others than root (mode {:04o})", path,
                status.st_mode & 07777);
  }
  return {};
}

}  // namespace

bool kernel_has_openat2() {
  UniqueFd fd = open_with(AT_FDCWD, ".", O_PATH | O_DIRECTORY, 0, RESOLVE_BENEATH);
  return fd.is_open() || errno != ENOSYS;
}

UniqueFd open_beneath(int folder, const char* path, int flags, Mounts mounts, mode_t mode) {
  std::uint64_t resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
  if (mounts == Mounts::refuse) resolve |= RESOLVE_NO_XDEV;
  return open_with(folder, path, flags, mode, resolve);
}

Result<UniqueFd> open_anchor(const Layout& layout) {
  UniqueFd fd(::open(layout.anchor.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!fd) return std::unexpected(system_error(errno, layout.anchor));
  return fd;
}

Result<UniqueFd> open_folder(int anchor, const std::string& path) {
  UniqueFd fd = open_beneath(anchor, relative(path), O_RDONLY | O_DIRECTORY);
  if (!fd) return std::unexpected(open_error(errno, path));
  return fd;
}

Result<UniqueFd> open_trusted_folder(int anchor, const std::string& path) {
  UniqueFd folder = open_beneath(anchor, ".", O_PATH | O_DIRECTORY);
  if (!folder) return std::unexpected(open_error(errno, path));
  TRY(check_trusted(folder.get(), "/"));
  std::string so_far;
  for (std::string_view part : split(std::string_view(path).substr(1), '/')) {
    so_far += '/';
    so_far += part;
    folder = open_beneath(folder.get(), std::string(part).c_str(), O_PATH | O_DIRECTORY);
    if (!folder) return std::unexpected(open_error(errno, so_far));
    TRY(check_trusted(folder.get(), so_far));
  }
  UniqueFd readable = open_beneath(folder.get(), ".", O_RDONLY | O_DIRECTORY);
  if (!readable) return std::unexpected(open_error(errno, path));
  return readable;
}

Result<UniqueFd> make_folder(int folder, const std::string& name, mode_t mode) {
  bool made = ::mkdirat(folder, name.c_str(), mode) == 0;
  if (!made && errno != EEXIST) return std::unexpected(system_error(errno, "make folder " + quote(name)));
  UniqueFd fd = open_beneath(folder, name.c_str(), O_RDONLY | O_DIRECTORY);
  if (!fd) return std::unexpected(open_error(errno, quote(name)));
  // The umask has taken bits away.
  if (made && ::fchmod(fd.get(), mode) != 0) return std::unexpected(system_error(errno, quote(name)));
  return fd;
}

Result<UniqueFd> reopen(int fd, int flags) {
  std::string link = fmt::format("/proc/self/fd/{}", fd);
  UniqueFd opened(::open(link.c_str(), flags | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
  if (!opened) return std::unexpected(system_error(errno, "open a file again"));
  return opened;
}

Result<std::string> read_all(int fd, std::string_view what, size_t max_bytes) {
  std::string content;
  std::array<char, 16384> buffer;
  while (true) {
    ssize_t count = ::read(fd, buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return std::unexpected(system_error(errno, what));
    if (count == 0) return content;
    content.append(buffer.data(), static_cast<size_t>(count));
    if (content.size() > max_bytes) {
      return fail(ErrorCode::resource_exhausted, "{} is larger than {} bytes", what, max_bytes);
    }
  }
}

Result<std::string> read_file_beneath(int folder, const std::string& name, size_t max_bytes) {
  UniqueFd fd = open_beneath(folder, name.c_str(), O_PATH | O_NOFOLLOW);
  if (!fd) return std::unexpected(open_error(errno, quote(name)));
  struct stat status{};
  if (::fstat(fd.get(), &status) != 0) return std::unexpected(system_error(errno, quote(name)));
  if (S_ISLNK(status.st_mode)) return std::unexpected(open_error(ELOOP, quote(name)));
  if (!S_ISREG(status.st_mode)) {
    return fail(ErrorCode::permission_denied, "{} is not a regular file", quote(name));
  }
  UniqueFd file = TRY(reopen(fd.get(), O_RDONLY));
  return read_all(file.get(), quote(name), max_bytes);
}

Result<void> write_all(int fd, std::string_view content, std::string_view what) {
  while (!content.empty()) {
    ssize_t count = ::write(fd, content.data(), content.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return std::unexpected(system_error(errno, what));
    content.remove_prefix(static_cast<size_t>(count));
  }
  return {};
}

Result<void> replace_file(int folder, const std::string& name, std::string_view content, mode_t mode) {
  std::string temporary = fmt::format(".{}.{}", name, random_name(8));
  UniqueFd fd = open_beneath(folder, temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, Mounts::enter, 0600);
  if (!fd) return std::unexpected(open_error(errno, quote(temporary)));
  auto written = [&]() -> Result<void> {
    TRY(write_all(fd.get(), content, quote(temporary)));
    if (::fchmod(fd.get(), mode) != 0 || ::fsync(fd.get()) != 0 ||
        ::renameat(folder, temporary.c_str(), folder, name.c_str()) != 0) {
      return std::unexpected(system_error(errno, "write " + quote(name)));
    }
    return {};
  }();
  if (!written) {
    ::unlinkat(folder, temporary.c_str(), 0);
    return written;
  }
  return sync_folder(folder, quote(name));
}

Result<void> remove_file(int folder, const std::string& name) {
  if (::unlinkat(folder, name.c_str(), 0) != 0) {
    if (errno == ENOENT) return {};
    return std::unexpected(system_error(errno, "remove " + quote(name)));
  }
  return sync_folder(folder, quote(name));
}

Result<void> sync_folder(int folder, std::string_view what) {
  if (::fsync(folder) != 0) return std::unexpected(system_error(errno, what));
  return {};
}

Result<std::vector<std::string>> list_names(int folder, size_t max_count, std::string_view prefix) {
  UniqueFd own = open_beneath(folder, ".", O_RDONLY | O_DIRECTORY);
  if (!own) return std::unexpected(open_error(errno, "list a folder"));
  std::unique_ptr<DIR, decltype([](DIR* entries) { ::closedir(entries); })> entries(::fdopendir(own.get()));
  if (!entries) return std::unexpected(system_error(errno, "list a folder"));
  static_cast<void>(own.release());
  std::vector<std::string> names;
  while (true) {
    errno = 0;
    const dirent* entry = ::readdir(entries.get());
    if (entry == nullptr && errno != 0) return std::unexpected(system_error(errno, "list a folder"));
    if (entry == nullptr) break;
    std::string_view name = entry->d_name;
    if (name == "." || name == ".." || !name.starts_with(prefix)) continue;
    if (names.size() == max_count) {
      return fail(ErrorCode::resource_exhausted, "a folder holds more than {} entries", max_count);
    }
    names.emplace_back(name);
  }
  std::ranges::sort(names);
  return names;
}

Result<bool> exists(int folder, const std::string& name) {
  struct stat status{};
  if (::fstatat(folder, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0) return true;
  if (errno == ENOENT) return false;
  return std::unexpected(system_error(errno, quote(name)));
}

Result<bool> is_mount_point(int folder, int fd) {
  auto mount_of = [](int descriptor) -> Result<std::uint64_t> {
    struct statx status{};
    if (::statx(descriptor, "", AT_EMPTY_PATH, STATX_MNT_ID, &status) != 0) {
      return std::unexpected(system_error(errno, "ask for a mount"));
    }
    if ((status.stx_mask & STATX_MNT_ID) == 0) {
      return fail(ErrorCode::internal, "this kernel does not name mounts; hive-priv needs Linux 5.8 or later");
    }
    return status.stx_mnt_id;
  };
  return TRY(mount_of(folder)) != TRY(mount_of(fd));
}

std::string random_name(size_t count) {
  constexpr std::string_view letters = "abcdefghijklmnopqrstuvwxyz012345";  // 32, so that no letter is likelier
  std::string name;
  while (name.size() < count) {
    std::array<unsigned char, 32> bytes{};
    ssize_t got = ::getrandom(bytes.data(), bytes.size(), 0);
    for (ssize_t i = 0; i < got && name.size() < count; ++i) {
      name += letters[bytes[static_cast<size_t>(i)] % letters.size()];
    }
  }
  return name;
}

}  // namespace hive::priv
