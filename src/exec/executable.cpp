#include "exec/executable.h"

#include <sys/stat.h>
#include <unistd.h>

#include "base/strings.h"

namespace hive::exec {

namespace {

bool is_executable_file(const std::string& path) {
  struct stat status{};
  return ::stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) && ::access(path.c_str(), X_OK) == 0;
}

}  // namespace

Result<void> check_command_name(std::string_view name) {
  if (name.empty()) return fail(ErrorCode::invalid_argument, "the command name is empty");
  if (name.find('\0') != std::string_view::npos) {
    return fail(ErrorCode::invalid_argument, "the command name {} holds a NUL character", quote(name));
  }
  if (name.front() != '/' && name.find('/') != std::string_view::npos) {
    return fail(ErrorCode::invalid_argument, "{} is a relative path; use a bare name or an absolute path", quote(name));
  }
  return {};
}

Result<std::string> resolve_executable(std::string_view name, std::string_view search_path) {
  TRY(check_command_name(name));
  if (name.front() == '/') {
    std::string path(name);
    if (!is_executable_file(path)) return fail(ErrorCode::not_found, "{} is not an executable file", quote(name));
    return path;
  }
  for (std::string_view folder : split(search_path, ':')) {
    // An empty or relative part of PATH would mean the working directory.
    if (!folder.starts_with('/')) continue;
    std::string path = std::string(folder) + "/" + std::string(name);
    if (is_executable_file(path)) return path;
  }
  return fail(ErrorCode::not_found, "{} is not installed in any of {}", quote(name), search_path);
}

}  // namespace hive::exec
