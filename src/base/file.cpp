#include "base/file.h"

#include <cerrno>
#include <cstdlib>
#include <filesystem>

#include <fcntl.h>
#include <sys/stat.h>

#include "base/unique_fd.h"

namespace hive {

Result<std::string> read_file(const std::string& path, size_t max_bytes, FileSecrecy secrecy) {
  // Non-blocking, so that a FIFO in the place of a file cannot hold the program.
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!fd) return std::unexpected(system_error(errno, path));
  struct stat status{};
  if (::fstat(fd.get(), &status) != 0) return std::unexpected(system_error(errno, path));
  if (!S_ISREG(status.st_mode)) return fail(ErrorCode::invalid_argument, "{}: not a regular file", path);
  if (secrecy == FileSecrecy::owner_only && (status.st_mode & 077) != 0) {
    return fail(ErrorCode::permission_denied, "{}: mode {:04o} lets others read or change a secret; run: chmod 600 {}",
                path, status.st_mode & 07777, path);
  }
  std::string content;
  content.reserve(std::min<size_t>(static_cast<size_t>(status.st_size) + 1, max_bytes + 1));
  char buffer[16384];
  while (true) {
    ssize_t count = ::read(fd.get(), buffer, sizeof buffer);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return std::unexpected(system_error(errno, path));
    if (count == 0) return content;
    content.append(buffer, static_cast<size_t>(count));
    if (content.size() > max_bytes) {
      return fail(ErrorCode::resource_exhausted, "{}: larger than {} bytes", path, max_bytes);
    }
  }
}

namespace {

Result<void> write_all(int fd, std::string_view content, const std::string& path) {
  while (!content.empty()) {
    ssize_t count = ::write(fd, content.data(), content.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return std::unexpected(system_error(errno, path));
    content.remove_prefix(static_cast<size_t>(count));
  }
  return {};
}

}  // namespace

Result<void> write_file_atomically(const std::string& path, std::string_view content, unsigned mode) {
  std::string folder = std::filesystem::path(path).parent_path().string();
  if (folder.empty()) folder = ".";
  std::string temporary = path + ".XXXXXX";
  UniqueFd fd(::mkostemp(temporary.data(), O_CLOEXEC));
  if (!fd) return std::unexpected(system_error(errno, temporary));
  auto written = [&]() -> Result<void> {
    if (::fchmod(fd.get(), mode) != 0) return std::unexpected(system_error(errno, temporary));
    TRY(write_all(fd.get(), content, temporary));
    if (::fsync(fd.get()) != 0) return std::unexpected(system_error(errno, temporary));
    if (::rename(temporary.c_str(), path.c_str()) != 0) return std::unexpected(system_error(errno, path));
    return {};
  }();
  if (!written) {
    ::unlink(temporary.c_str());
    return written;
  }
  UniqueFd folder_fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder_fd || ::fsync(folder_fd.get()) != 0) return std::unexpected(system_error(errno, folder));
  return {};
}

Result<void> make_private_folder(const std::string& path) {
  for (size_t end = path.find('/', 1);; end = path.find('/', end + 1)) {
    std::string prefix = path.substr(0, end);
    if (!prefix.empty() && ::mkdir(prefix.c_str(), 0700) != 0 && errno != EEXIST) {
      return std::unexpected(system_error(errno, prefix));
    }
    if (end == std::string::npos) break;
  }
  struct stat status{};
  if (::stat(path.c_str(), &status) != 0) return std::unexpected(system_error(errno, path));
  if (!S_ISDIR(status.st_mode)) return fail(ErrorCode::invalid_argument, "{}: not a folder", path);
  return {};
}

}  // namespace hive
