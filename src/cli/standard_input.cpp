#include "cli/standard_input.h"

#include <cerrno>

#include <unistd.h>

namespace hive::cli {

Result<std::string> read_standard_input(std::size_t max_bytes, std::string_view what) {
  std::string text;
  char buffer[16384];
  while (true) {
    ssize_t count = ::read(STDIN_FILENO, buffer, sizeof buffer);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return std::unexpected(system_error(errno, "standard input"));
    if (count == 0) return text;
    text.append(buffer, static_cast<std::size_t>(count));
    if (text.size() > max_bytes) {
      return fail(ErrorCode::resource_exhausted, "{}: more than {} bytes on standard input", what, max_bytes);
    }
  }
}

}  // namespace hive::cli
