#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/result.h"
#include "config/secret.h"

namespace hive::swarm {

/// One agent of a swarm.
struct Identity {
  std::string agent;
  config::Secret private_key;  ///< the text of an OpenSSH key file
};

/// Makes the keys of PREFIX-1 to PREFIX-COUNT and writes them to `path`, one after the other; ten thousand files would
/// only cost time. Returns their lines for authorized_keys.
Result<std::string> make_keys(const std::string& prefix, std::size_t count, const std::string& path);

/// The first `limit` agents of such a file, all with 0; fails if there are fewer.
Result<std::vector<Identity>> load_keys(const std::string& path, std::size_t limit);

}  // namespace hive::swarm
