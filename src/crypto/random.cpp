#include "crypto/random.h"

#include <cerrno>
#include <cstdlib>
#include <vector>

#include <sys/random.h>

#include "base/log.h"
#include "base/strings.h"

namespace hive::crypto {

void random_bytes(std::span<std::uint8_t> bytes) {
  while (!bytes.empty()) {
    ssize_t count = ::getrandom(bytes.data(), bytes.size(), 0);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) {
      // Going on with predictable keys or ids would be worse than stopping.
      log::error("the kernel gives no random bytes; stopping", {{"errno", errno}});
      std::abort();
    }
    bytes = bytes.subspan(static_cast<size_t>(count));
  }
}

std::string random_hex(size_t count) {
  std::vector<std::uint8_t> bytes(count);
  random_bytes(bytes);
  return to_hex(bytes);
}

}  // namespace hive::crypto
