#include "agent/tools/file_access.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <memory>
#include <vector>

#include <fcntl.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>

#include "base/strings.h"

namespace hive::agent {

namespace {

constexpr size_t chunk_bytes = size_t{64} << 10;

UniqueFd open_at(int folder, const char* path, std::uint64_t flags, std::uint64_t resolve) {
  open_how how{};
  how.flags = flags | O_CLOEXEC;
  how.resolve = resolve;
  for (int tries = 0;; ++tries) {
    auto fd = static_cast<int>(::syscall(SYS_openat2, folder, path, &how, sizeof(how)));
    // The kernel gives up when something moves while it looks; openat2(2) says to try again.
    if (fd < 0 && (errno == EAGAIN || errno == EINTR) && tries < 100) continue;
    return UniqueFd(fd);
  }
}

Error open_error(int error, const std::string& path) {
  switch (error) {
    case ENOENT:
    case ENOTDIR:
      return {ErrorCode::not_found, quote(path) + " does not exist"};
    case EXDEV:
      return {ErrorCode::permission_denied, quote(path) + " leads out of the allowed folder"};
    case ELOOP:
      return {ErrorCode::permission_denied, quote(path) + " contains a link that may not be followed"};
    case EACCES:
    case EPERM:
      return {ErrorCode::permission_denied, "the agent may not read " + quote(path)};
    default:
      return system_error(error, "open " + quote(path));
  }
}

// Turns a descriptor that only names a file into one that reads it. Nothing is opened before it is known to be a
// regular file: opening a device or a pipe can already do something.
Result<UniqueFd> open_for_reading(UniqueFd name_only, const std::string& path) {
  struct stat status{};
  if (::fstat(name_only.get(), &status) < 0) return std::unexpected(system_error(errno, "stat " + quote(path)));
  if (!S_ISREG(status.st_mode)) {
    return fail(ErrorCode::permission_denied, "{} is not a regular file", quote(path));
  }
  TRY(check_kernel_file(name_only, path));
  std::string link = fmt::format("/proc/self/fd/{}", name_only.get());
  UniqueFd file(::open(link.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  if (!file) return std::unexpected(open_error(errno, path));
  return file;
}

// The path with every link followed, or empty.
std::string canonical(const std::string& path) {
  std::unique_ptr<char, decltype(&std::free)> resolved(::realpath(path.c_str(), nullptr), &std::free);
  return resolved ? std::string(resolved.get()) : std::string();
}

std::string relative_to(std::string_view path, std::string_view root) {
  path.remove_prefix(root == "/" ? 0 : root.size());
  while (path.starts_with('/'))
    path.remove_prefix(1);
  return path.empty() ? "." : std::string(path);
}

bool may_read_in_proc(std::string_view path) {
  std::vector<std::string_view> parts = split(path, '/');
  // "", "proc", then the name; a proc file system that is mounted elsewhere is judged by its last parts.
  auto number = std::ranges::find_if(parts, [](std::string_view part) {
    return !part.empty() && part.find_first_not_of("0123456789") == std::string_view::npos;
  });
  if (number != parts.end()) {
    static constexpr std::array<std::string_view, 9> harmless = {"status", "stat",   "statm",     "limits", "cgroup",
                                                                 "comm",   "mounts", "mountinfo", "io"};
    if (std::distance(number, parts.end()) >= 3 && number[1] == "net") return true;
    return std::distance(number, parts.end()) == 2 && std::ranges::find(harmless, number[1]) != harmless.end();
  }
  static constexpr std::array<std::string_view, 9> forbidden = {
      "kcore", "kmsg", "kallsyms", "sysrq-trigger", "keys", "key-users", "vmcore", "timer_list", "sched_debug"};
  std::string_view name = parts.back();
  return std::ranges::find(forbidden, name) == forbidden.end() && !name.starts_with("kpage");
}

}  // namespace

Result<std::string> normalise_path(std::string_view path) {
  if (!path.starts_with('/')) return fail(ErrorCode::invalid_argument, "path must be an absolute path");
  if (path.size() >= PATH_MAX) return fail(ErrorCode::invalid_argument, "path is longer than {} bytes", PATH_MAX - 1);
  for (char c : path) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      return fail(ErrorCode::invalid_argument, "path holds a control character");
    }
  }
  std::string normal;
  for (std::string_view part : split(path, '/')) {
    if (part.empty() || part == ".") continue;
    if (part == "..") return fail(ErrorCode::invalid_argument, "path traversal: \"..\" is not allowed");
    normal += '/';
    normal += part;
  }
  return normal.empty() ? "/" : normal;
}

bool lies_under(std::string_view path, std::string_view root) {
  if (root == "/") return true;
  return path.starts_with(root) && (path.size() == root.size() || path[root.size()] == '/');
}

Result<UniqueFd> open_beneath(const std::string& root, const std::string& path) {
  UniqueFd folder(::open(root.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!folder) return std::unexpected(system_error(errno, "open allowed folder " + quote(root)));
  UniqueFd file =
      open_at(folder.get(), relative_to(path, root).c_str(), O_PATH, RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS);
  if (!file && errno == EXDEV) {
    // A link with an absolute target counts as leaving. It may still end under the root: ask for where it ends, without
    // any link, so that a link which changes meanwhile finds nothing.
    std::string real_root = canonical(root);
    std::string real_file = canonical(path);
    if (real_root.empty() || real_file.empty() || !lies_under(real_file, real_root)) {
      return std::unexpected(open_error(EXDEV, path));
    }
    file = open_at(folder.get(), relative_to(real_file, real_root).c_str(), O_PATH,
                   RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);
  }
  if (!file) return std::unexpected(open_error(errno, path));
  return open_for_reading(std::move(file), path);
}

Result<UniqueFd> open_anywhere(const std::string& path) {
  UniqueFd file = open_at(AT_FDCWD, path.c_str(), O_PATH, RESOLVE_NO_MAGICLINKS);
  if (!file) return std::unexpected(open_error(errno, path));
  return open_for_reading(std::move(file), path);
}

Result<std::string> real_path(const UniqueFd& file) {
  std::string path(PATH_MAX, '\0');
  std::string link = fmt::format("/proc/self/fd/{}", file.get());
  ssize_t length = ::readlink(link.c_str(), path.data(), path.size());
  if (length < 0) return std::unexpected(system_error(errno, "find out where a file is"));
  path.resize(static_cast<size_t>(length));
  return path;
}

Result<void> check_kernel_file(const UniqueFd& file, std::string_view path) {
  struct statfs status{};
  if (::fstatfs(file.get(), &status) < 0) return std::unexpected(system_error(errno, "statfs " + quote(path)));
  switch (static_cast<unsigned long>(status.f_type)) {
    case TRACEFS_MAGIC:
    case DEBUGFS_MAGIC:
    case SECURITYFS_MAGIC:
    case SELINUX_MAGIC:
    case SMACK_MAGIC:
    case BPF_FS_MAGIC:
    case EFIVARFS_MAGIC:
    case NSFS_MAGIC:
      return fail(ErrorCode::permission_denied, "{} is a file of the kernel that may not be read", quote(path));
    case PROC_SUPER_MAGIC:
      if (!may_read_in_proc(TRY(real_path(file)))) {
        return fail(ErrorCode::permission_denied, "{} is a file of the kernel that may not be read", quote(path));
      }
      return {};
    default:
      return {};
  }
}

Result<FileContent> read_start(const UniqueFd& file, size_t max_bytes) {
  FileContent content;
  struct stat status{};
  if (::fstat(file.get(), &status) < 0) return std::unexpected(system_error(errno, "stat"));
  content.bytes.resize(max_bytes + 1);
  size_t size = 0;
  while (size < content.bytes.size()) {
    ssize_t count = ::read(file.get(), content.bytes.data() + size, content.bytes.size() - size);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return std::unexpected(system_error(errno, "read"));
    if (count == 0) break;
    size += static_cast<size_t>(count);
  }
  content.truncated = size > max_bytes;
  content.bytes.resize(std::min(size, max_bytes));
  content.size_bytes = std::max<std::uint64_t>(static_cast<std::uint64_t>(status.st_size), content.bytes.size());
  return content;
}

Result<std::string> read_last_lines(const UniqueFd& file, size_t lines, size_t max_bytes) {
  struct stat status{};
  if (::fstat(file.get(), &status) < 0) return std::unexpected(system_error(errno, "stat"));
  off_t end = status.st_size;
  off_t floor = std::max<off_t>(0, end - static_cast<off_t>(max_bytes));
  std::string text;
  std::string chunk;
  size_t newlines = 0;
  off_t at = end;
  // One newline more than lines: the one that ends the line before the first that is wanted.
  while (at > floor && newlines <= lines) {
    auto want = static_cast<size_t>(std::min<off_t>(at - floor, static_cast<off_t>(chunk_bytes)));
    at -= static_cast<off_t>(want);
    chunk.resize(want);
    size_t size = 0;
    while (size < want) {
      ssize_t count = ::pread(file.get(), chunk.data() + size, want - size, at + static_cast<off_t>(size));
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) return std::unexpected(system_error(errno, "read"));
      if (count == 0) break;  // it was cut meanwhile
      size += static_cast<size_t>(count);
    }
    chunk.resize(size);
    newlines += static_cast<size_t>(std::ranges::count(chunk, '\n'));
    text.insert(0, chunk);
  }
  if (text.ends_with('\n')) text.pop_back();
  size_t begin = text.size();
  for (size_t i = 0; i < lines && begin != std::string::npos; ++i)
    begin = begin == 0 ? std::string::npos : text.rfind('\n', begin - 1);
  if (begin != std::string::npos) {
    text.erase(0, begin + 1);
  } else if (at > 0) {
    // The bound cut a line; what is left of it is better than nothing.
    text.insert(0, "[...]");
  }
  return text;
}

}  // namespace hive::agent
