#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "crypto/merkle.h"
#include "crypto/ssh_key.h"
#include "gateway/audit/log_file.h"

namespace hive::audit {

/// The state of a log up to its last checkpoint, from which its writer goes on.
struct RecoveredLog {
  crypto::MerkleTree tree;
  std::uint64_t torn_bytes = 0;    ///< behind the last checkpoint, now in `torn_path`
  std::uint64_t torn_entries = 0;  ///< whole entries among them
  std::string torn_path;
};

/// Checks the whole log, and that `key` signed its last checkpoint under `origin`. What stands behind that checkpoint
/// is moved aside if it can be the rest of a batch that a crash cut short; anything else is refused and left untouched.
/// An empty file is a new log.
Result<RecoveredLog> recover_log(LogFile& file, const std::string& path, const std::string& origin,
                                 const crypto::PublicKey& key);

}  // namespace hive::audit
