#include "config/file_mode.h"

#include <cerrno>

#include <sys/stat.h>

namespace hive::config {

Result<void> check_private_key_mode(const std::string& path) {
  struct stat status{};
  if (::stat(path.c_str(), &status) != 0) {
    if (errno == ENOENT || errno == ENOTDIR) return {};
    return std::unexpected(system_error(errno, path));
  }
  if (!S_ISREG(status.st_mode)) return fail(ErrorCode::invalid_argument, "{} is not a regular file", path);
  if ((status.st_mode & 077) == 0) return {};
  return fail(ErrorCode::permission_denied, "{} has mode {:04o}: others can read or change the key; run: chmod 600 {}",
              path, status.st_mode & 07777U, path);
}

Result<void> check_configuration_mode(const std::string& path, bool holds_secrets) {
  struct stat status{};
  if (::stat(path.c_str(), &status) != 0) return std::unexpected(system_error(errno, path));
  if ((status.st_mode & 002) != 0) {
    return fail(ErrorCode::permission_denied, "mode {:04o} lets everyone change the configuration; run: chmod o-w {}",
                status.st_mode & 07777U, path);
  }
  if (holds_secrets && (status.st_mode & 004) != 0) {
    return fail(ErrorCode::permission_denied,
                "mode {:04o} lets everyone read the secrets in it; run: chmod 600 {} (or keep the secrets elsewhere "
                "with env:NAME or file:/path)",
                status.st_mode & 07777U, path);
  }
  return {};
}

}  // namespace hive::config
