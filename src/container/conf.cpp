#include "container/conf.h"

#include <cerrno>

#include <sys/stat.h>

#include "base/file.h"
#include "base/strings.h"

namespace hive::container {

Result<Conf> Conf::parse(std::string_view text, const std::string& path) {
  Conf conf;
  conf.path_ = path;
  conf.file_ = TRY_CONTEXT(path, priv::ConfFile::parse(text));
  return conf;
}

Result<Conf> Conf::load(const std::string& path) {
  struct stat status{};
  if (::stat(path.c_str(), &status) != 0) return std::unexpected(system_error(errno, path));
  if (status.st_uid != 0 || (status.st_mode & 022) != 0) {
    return fail(ErrorCode::permission_denied,
                "{}: others than root can change it; run: chown root:root {} && chmod 644 {}", path, path, path);
  }
  return parse(TRY(read_file(path, priv::ConfFile::max_bytes)), path);
}

Result<bool> Conf::flag(std::string_view key) const {
  std::string_view value = get(key);
  if (value == "1") return true;
  if (value.empty() || value == "0") return false;
  return fail(ErrorCode::invalid_argument, "{}: {}={}: only 1 or 0", path_, key, quote(value));
}

}  // namespace hive::container
