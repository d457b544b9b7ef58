#pragma once

#include <string>

#include "base/clock.h"
#include "crypto/merkle.h"
#include "crypto/ssh_key.h"
#include "gateway/audit/log_file.h"
#include "gateway/audit/writer_queue.h"

namespace hive::audit {

/// Makes the lines of a batch, hashes and signs them, and puts them on disk; the state goes on only if that worked.
/// Belongs to the writer's thread.
class BatchWriter {
 public:
  BatchWriter(LogFile file, crypto::MerkleTree tree, std::string origin, crypto::PrivateKey key)
      : file_(std::move(file)), tree_(std::move(tree)), origin_(std::move(origin)), key_(std::move(key)) {}

  /// Writes the entries of `queue` and a checkpoint behind them. `queue` is left as it is.
  Result<void> write(WriterQueue& queue, WallTime now, bool ssh_signature);

  /// Entries on disk; the sequence number that the next one gets.
  [[nodiscard]] std::uint64_t size() const { return tree_.size(); }

 private:
  LogFile file_;
  crypto::MerkleTree tree_;
  crypto::MerkleHasher hasher_;
  std::string origin_;
  crypto::PrivateKey key_;
  std::string lines_;
};

}  // namespace hive::audit
