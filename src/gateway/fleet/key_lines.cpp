#include "gateway/fleet/key_lines.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/strings.h"
#include "base/unique_fd.h"

namespace hive::fleet {

namespace {

constexpr std::chrono::milliseconds lock_patience(500);
constexpr std::chrono::milliseconds lock_poll{10};

// Removes the lines with these numbers, counted from 1, with their newlines.
std::string without_lines(std::string_view text, const std::set<std::size_t>& numbers) {
  std::string kept;
  kept.reserve(text.size());
  for (std::size_t number = 1; !text.empty(); ++number) {
    std::size_t end = text.find('\n');
    std::size_t size = end == std::string_view::npos ? text.size() : end + 1;
    if (!numbers.contains(number)) kept += text.substr(0, size);
    text.remove_prefix(size);
  }
  return kept;
}

Result<void> write_all(int fd, std::string_view content, const std::string& path) {
  while (!content.empty()) {
    ssize_t count = ::write(fd, content.data(), content.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return std::unexpected(system_error(errno, path));
    content.remove_prefix(static_cast<std::size_t>(count));
  }
  return {};
}

Result<void> copy_attributes(int fd, const struct stat& old, const std::string& path) {
  struct stat made{};
  if (::fstat(fd, &made) != 0) return std::unexpected(system_error(errno, path));
  if ((made.st_uid != old.st_uid || made.st_gid != old.st_gid) && ::fchown(fd, old.st_uid, old.st_gid) != 0) {
    return fail(ErrorCode::permission_denied,
                "{} belongs to user {} and group {}, which the gateway cannot keep when it replaces the file: give the "
                "file to the gateway's own user",
                path, old.st_uid, old.st_gid);
  }
  // After the owner, whose change clears bits of the mode.
  if (::fchmod(fd, old.st_mode & 07777) != 0) return std::unexpected(system_error(errno, path));
  return {};
}

// What the path points to, so that a link is not replaced by a file.
std::string resolved(const std::string& path) {
  char* real = ::realpath(path.c_str(), nullptr);
  std::string result = real == nullptr ? path : real;
  std::free(real);
  return result;
}

}  // namespace

std::string with_key(std::string text, const crypto::PublicKey& key) {
  if (!text.empty() && !text.ends_with('\n')) text += '\n';
  return text + key.to_line() + "\n";
}

KeyRemoval without_keys(std::string text, std::string_view agent, std::string_view fingerprint) {
  KeyRemoval result{std::move(text), 0};
  std::vector<crypto::PublicKey> removed;
  for (;;) {
    std::set<std::size_t> numbers;
    for (const crypto::AuthorizedKey& entry : crypto::parse_authorized_keys(result.text).keys) {
      bool wanted = entry.key.comment() == agent && (fingerprint.empty() || entry.key.fingerprint() == fingerprint);
      bool repeated = std::ranges::find(removed, entry.key) != removed.end();
      if (!wanted && !repeated) continue;
      numbers.insert(entry.line_number);
      if (!repeated) removed.push_back(entry.key);
    }
    if (numbers.empty()) return result;
    result.text = without_lines(result.text, numbers);
    result.removed += numbers.size();
  }
}

Result<void> replace_keeping_attributes(const std::string& path, std::string_view content) {
  std::string target = resolved(path);
  struct stat old{};
  bool exists = ::stat(target.c_str(), &old) == 0;
  if (!exists && errno != ENOENT) return std::unexpected(system_error(errno, path));
  std::string temporary = target + ".XXXXXX";
  UniqueFd fd(::mkostemp(temporary.data(), O_CLOEXEC));
  if (!fd) {
    return std::unexpected(with_context(system_error(errno, temporary),
                                        "the gateway's user must be able to write in the folder of authorized_keys"));
  }
  auto written = [&]() -> Result<void> {
    if (exists) TRY(copy_attributes(fd.get(), old, target));
    TRY(write_all(fd.get(), content, temporary));
    if (::fsync(fd.get()) != 0) return std::unexpected(system_error(errno, temporary));
    if (::rename(temporary.c_str(), target.c_str()) != 0) return std::unexpected(system_error(errno, target));
    return {};
  }();
  if (!written) {
    ::unlink(temporary.c_str());
    return written;
  }
  std::string folder = std::filesystem::path(target).parent_path().string();
  if (folder.empty()) folder = ".";
  UniqueFd folder_fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder_fd || ::fsync(folder_fd.get()) != 0) return std::unexpected(system_error(errno, folder));
  return {};
}

Result<FileLock> FileLock::take(const std::string& path) {
  std::string lock_path = resolved(path) + ".lock";
  UniqueFd fd(::open(lock_path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd) {
    return std::unexpected(with_context(system_error(errno, lock_path),
                                        "the gateway's user must be able to write in the folder of authorized_keys"));
  }
  // flock knows no time limit, and a forgotten holder must not hold the store's thread for ever.
  auto deadline = std::chrono::steady_clock::now() + lock_patience;
  while (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno == EINTR) continue;
    if (errno != EWOULDBLOCK) return std::unexpected(system_error(errno, lock_path));
    if (std::chrono::steady_clock::now() >= deadline) {
      return fail(ErrorCode::unavailable, "{}: another program has held this lock for {} ms; `fuser {}` names it",
                  lock_path, lock_patience.count(), lock_path);
    }
    std::this_thread::sleep_for(lock_poll);
  }
  return FileLock(fd.release());
}

FileLock::FileLock(FileLock&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

FileLock::~FileLock() {
  if (fd_ >= 0) ::close(fd_);
}

}  // namespace hive::fleet
