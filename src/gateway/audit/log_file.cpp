#include "gateway/audit/log_file.h"

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "base/file.h"
#include "base/strings.h"

namespace hive::audit {

namespace {

constexpr size_t copy_piece_bytes = 65536;

std::string folder_of(const std::string& path) {
  std::string folder = std::filesystem::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

Result<void> sync_folder(const std::string& path) {
  std::string folder = folder_of(path);
  UniqueFd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd || ::fsync(fd.get()) != 0) return std::unexpected(system_error(errno, folder));
  return {};
}

// Who holds the lock, from /proc/locks: "1: FLOCK  ADVISORY  WRITE 4711 fe:01:1234 0 EOF". Only for the message.
std::string lock_holder(const struct stat& status) {
  std::ifstream locks("/proc/locks");
  std::string wanted = fmt::format("{:02x}:{:02x}:{}", major(status.st_dev), minor(status.st_dev), status.st_ino);
  for (std::string line; std::getline(locks, line);) {
    std::istringstream words(line);
    std::string number;
    std::string kind;
    std::string mode;
    std::string access;
    std::string pid;
    std::string place;
    words >> number >> kind >> mode >> access >> pid >> place;
    if (place != wanted) continue;
    auto name = read_file("/proc/" + pid + "/comm", 64);
    return name ? fmt::format("{} (pid {})", escape_for_terminal(trim(*name)), pid) : "pid " + pid;
  }
  return "another process";
}

Result<void> check_kind(const std::string& path, const struct stat& status) {
  if (!S_ISREG(status.st_mode)) return fail(ErrorCode::invalid_argument, "{}: not a regular file", path);
  // A group of auditors may read it.
  if ((status.st_mode & 037) != 0) {
    return fail(ErrorCode::permission_denied,
                "{}: mode {:04o} lets others read or change the audit log; run: chmod 600 {}", path,
                status.st_mode & 07777, path);
  }
  return {};
}

Result<void> write_at(int fd, std::uint64_t offset, std::string_view bytes, const std::string& path) {
  while (!bytes.empty()) {
    ssize_t count = ::pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return std::unexpected(system_error(errno, path));
    offset += static_cast<std::uint64_t>(count);
    bytes.remove_prefix(static_cast<size_t>(count));
  }
  return {};
}

// A new file that did not exist before: a second crash at the same entry must not overwrite what the first left.
Result<std::pair<UniqueFd, std::string>> create_beside(const std::string& path, std::uint64_t seq) {
  for (int attempt = 1; attempt <= 1000; ++attempt) {
    std::string name = fmt::format("{}.torn-{}", path, seq);
    if (attempt > 1) name += fmt::format("-{}", attempt);
    UniqueFd fd(::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (fd) return std::pair(std::move(fd), std::move(name));
    if (errno != EEXIST) return std::unexpected(system_error(errno, name));
  }
  return fail(ErrorCode::resource_exhausted, "{}.torn-{}: a thousand such files exist; move them away", path, seq);
}

}  // namespace

Result<LogFile> LogFile::open(const std::string& path) {
  constexpr int flags = O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
  bool created = false;
  UniqueFd fd(::open(path.c_str(), flags));
  if (!fd && errno == ENOENT) {
    fd.reset(::open(path.c_str(), flags | O_CREAT | O_EXCL, 0600));
    created = fd.is_open();
    if (!fd && errno == EEXIST) fd.reset(::open(path.c_str(), flags));
  }
  if (!fd && errno == ELOOP) {
    return fail(ErrorCode::invalid_argument, "{}: a symbolic link; name the audit log's real path", path);
  }
  if (!fd) return std::unexpected(system_error(errno, path));
  struct stat status{};
  if (::fstat(fd.get(), &status) != 0) return std::unexpected(system_error(errno, path));
  TRY(check_kind(path, status));
  if (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return std::unexpected(system_error(errno, path));
    return fail(ErrorCode::already_exists,
                "{}: {} holds this audit log open; stop it, or give each gateway a log of its own", path,
                lock_holder(status));
  }
  // Whoever held the lock until now may have written since the first look.
  if (::fstat(fd.get(), &status) != 0) return std::unexpected(system_error(errno, path));
  if (created) TRY(sync_folder(path));
  return LogFile(path, std::move(fd), static_cast<std::uint64_t>(status.st_size));
}

Result<void> LogFile::check_undisturbed() const {
  struct stat ours{};
  struct stat named{};
  if (::fstat(fd_.get(), &ours) != 0) return std::unexpected(system_error(errno, path_));
  if (::stat(path_.c_str(), &named) != 0 || named.st_dev != ours.st_dev || named.st_ino != ours.st_ino) {
    return fail(ErrorCode::io, "{}: the audit log was moved, deleted or replaced while in use; put it back", path_);
  }
  if (static_cast<std::uint64_t>(ours.st_size) != size_) {
    return fail(ErrorCode::io, "{}: somebody else changed the audit log while in use: {} bytes instead of {}", path_,
                ours.st_size, size_);
  }
  return {};
}

Result<void> LogFile::cut_back() {
  if (!dirty_) return {};
  while (::ftruncate(fd_.get(), static_cast<off_t>(size_)) != 0) {
    if (errno != EINTR) return std::unexpected(system_error(errno, path_));
  }
  dirty_ = false;
  return {};
}

Result<void> LogFile::append(std::string_view bytes) {
  TRY(cut_back());
  TRY(check_undisturbed());
  dirty_ = true;
  Result<void> written = write_at(fd_.get(), size_, bytes, path_);
  if (written && ::fdatasync(fd_.get()) != 0) written = std::unexpected(system_error(errno, path_));
  if (written) {
    size_ += bytes.size();
    dirty_ = false;
    return {};
  }
  // If even this fails, the next append tries again before it writes anything.
  (void)cut_back();
  return written;
}

Result<std::string> LogFile::move_tail_aside(std::uint64_t offset, std::uint64_t seq) {
  auto [copy, copy_path] = TRY(create_beside(path_, seq));
  std::string piece(copy_piece_bytes, '\0');
  std::uint64_t at = offset;
  while (true) {
    ssize_t count = ::pread(fd_.get(), piece.data(), piece.size(), static_cast<off_t>(at));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return std::unexpected(system_error(errno, path_));
    if (count == 0) break;
    TRY(write_at(copy.get(), at - offset, std::string_view(piece).substr(0, static_cast<size_t>(count)), copy_path));
    at += static_cast<std::uint64_t>(count);
  }
  if (::fsync(copy.get()) != 0) return std::unexpected(system_error(errno, copy_path));
  TRY(sync_folder(copy_path));
  size_ = offset;
  dirty_ = true;
  TRY(cut_back());
  if (::fsync(fd_.get()) != 0) return std::unexpected(system_error(errno, path_));
  return copy_path;
}

}  // namespace hive::audit
