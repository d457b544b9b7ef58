#pragma once

#include <cstdint>
#include <string>

#include <sys/types.h>

#include "base/result.h"
#include "base/unique_fd.h"

namespace hive::audit {

/// The file of a log opened for reading only, with no lock: reading never disturbs the gateway that writes it.
struct LogSource {
  UniqueFd fd;
  std::uint64_t size = 0;  ///< at the time of opening
  dev_t device = 0;
  ino_t inode = 0;

  static Result<LogSource> open(const std::string& path);
};

}  // namespace hive::audit
