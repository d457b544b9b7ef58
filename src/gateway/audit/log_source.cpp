#include "gateway/audit/log_source.h"

#include <cerrno>

#include <fcntl.h>
#include <sys/stat.h>

namespace hive::audit {

Result<LogSource> LogSource::open(const std::string& path) {
  LogSource source;
  // Non-blocking, so that a FIFO in the place of the log cannot hold the program.
  source.fd.reset(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!source.fd) return std::unexpected(system_error(errno, path));
  struct stat status{};
  if (::fstat(source.fd.get(), &status) != 0) return std::unexpected(system_error(errno, path));
  if (!S_ISREG(status.st_mode)) return fail(ErrorCode::invalid_argument, "{}: not a regular file", path);
  source.size = static_cast<std::uint64_t>(status.st_size);
  source.device = status.st_dev;
  source.inode = status.st_ino;
  return source;
}

}  // namespace hive::audit
