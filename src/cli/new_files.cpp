#include "cli/new_files.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/strings.h"
#include "base/unique_fd.h"

namespace hive::cli {

namespace {

Result<void> write_all(int fd, std::string_view content, const std::string& path) {
  while (!content.empty()) {
    ssize_t count = ::write(fd, content.data(), content.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return std::unexpected(system_error(errno, path));
    content.remove_prefix(static_cast<std::size_t>(count));
  }
  if (::fsync(fd) != 0) return std::unexpected(system_error(errno, path));
  return {};
}

Result<void> sync_folder_of(const std::string& path) {
  std::string folder = std::filesystem::path(path).parent_path().string();
  UniqueFd fd(::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd || ::fsync(fd.get()) != 0) return std::unexpected(system_error(errno, folder));
  return {};
}

// Fails where something stands already, also when it came a moment ago.
Result<void> rename_to_free_name(const std::string& from, const std::string& to) {
  if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0) return {};
  // Not every file system can do that.
  if (errno == EINVAL || errno == ENOSYS) {
    if (::link(from.c_str(), to.c_str()) == 0) {
      ::unlink(from.c_str());
      return {};
    }
  }
  if (errno == EEXIST) return fail(ErrorCode::already_exists, "{} exists", to);
  return std::unexpected(system_error(errno, to));
}

}  // namespace

NewFiles::~NewFiles() {
  bool all_published = std::ranges::all_of(files_, &File::published);
  if (!all_published) remove_all();
}

void NewFiles::remove_all() {
  for (const File& file : files_)
    ::unlink(file.published ? file.path.c_str() : file.temporary.c_str());
  files_.clear();
}

Result<void> NewFiles::reserve(const std::string& path, unsigned mode) {
  struct stat status{};
  if (::lstat(path.c_str(), &status) == 0) {
    return fail(ErrorCode::already_exists, "{} exists and is not overwritten; move it away or choose another name",
                escape_for_terminal(path));
  }
  std::string temporary = path + ".XXXXXX";
  UniqueFd fd(::mkostemp(temporary.data(), O_CLOEXEC));
  if (!fd) return std::unexpected(system_error(errno, escape_for_terminal(path)));
  files_.push_back({path, temporary});
  if (::fchmod(fd.get(), mode) != 0) return std::unexpected(system_error(errno, temporary));
  return {};
}

Result<void> NewFiles::write(const std::string& path, std::string_view content) {
  auto file = std::ranges::find(files_, path, &File::path);
  if (file == files_.end()) return fail(ErrorCode::internal, "{} was not reserved", path);
  UniqueFd fd(::open(file->temporary.c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC | O_NOFOLLOW));
  if (!fd) return std::unexpected(system_error(errno, file->temporary));
  return write_all(fd.get(), content, file->temporary);
}

Result<void> NewFiles::publish() {
  for (File& file : files_) {
    Result<void> renamed = rename_to_free_name(file.temporary, file.path);
    if (renamed) file.published = true;
    if (renamed) renamed = sync_folder_of(file.path);
    if (!renamed) {
      remove_all();
      return renamed;
    }
  }
  return {};
}

Result<void> replace_keeping_old(const std::string& path, std::string_view content) {
  struct stat old{};
  if (::stat(path.c_str(), &old) != 0) return std::unexpected(system_error(errno, path));
  std::string temporary = path + ".XXXXXX";
  UniqueFd fd(::mkostemp(temporary.data(), O_CLOEXEC));
  if (!fd) return std::unexpected(system_error(errno, temporary));
  auto replaced = [&]() -> Result<void> {
    if (old.st_uid != ::geteuid() && ::fchown(fd.get(), old.st_uid, old.st_gid) != 0) {
      return fail(ErrorCode::permission_denied, "{}: belongs to another user; run this as that user or as root", path);
    }
    if (::fchmod(fd.get(), old.st_mode & 07777) != 0) return std::unexpected(system_error(errno, temporary));
    TRY(write_all(fd.get(), content, temporary));
    // The old one never lacks a name, so that an agent that starts in between finds one of the two.
    std::string aside = path + ".old";
    std::string second_name = temporary + ".old";
    if (::link(path.c_str(), second_name.c_str()) != 0) return std::unexpected(system_error(errno, second_name));
    if (::rename(second_name.c_str(), aside.c_str()) != 0) {
      int error = errno;
      ::unlink(second_name.c_str());
      return std::unexpected(system_error(error, aside));
    }
    if (::rename(temporary.c_str(), path.c_str()) != 0) return std::unexpected(system_error(errno, path));
    return {};
  }();
  if (!replaced) {
    ::unlink(temporary.c_str());
    return replaced;
  }
  return sync_folder_of(path);
}

}  // namespace hive::cli
