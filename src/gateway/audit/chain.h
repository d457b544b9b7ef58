#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "crypto/merkle.h"
#include "crypto/ssh_key.h"
#include "gateway/audit/checkpoint.h"
#include "gateway/audit/entry.h"

namespace hive::audit {

/// Follows a log line by line: numbers, framing, and the Merkle root at every checkpoint. Whoever opens, verifies,
/// watches or proves uses this one, so they agree on what a good log is. Not thread-safe.
class Chain {
 public:
  enum class Line { entry, checkpoint };

  /// An empty `origin` takes the one of the first checkpoint.
  explicit Chain(std::string origin = {}) : origin_(std::move(origin)) {}

  /// Takes the next line, without its newline. After an error the chain must not be used further; the message says what
  /// is wrong with the line.
  Result<Line> add(std::string_view line);

  [[nodiscard]] std::uint64_t entries() const { return tree_.size(); }
  [[nodiscard]] const crypto::MerkleTree& tree() const { return tree_; }
  [[nodiscard]] crypto::Digest root() { return tree_.root(hasher_); }
  [[nodiscard]] const std::string& origin() const { return origin_; }
  /// Of the last line, if it was an entry; points into that line.
  [[nodiscard]] const EntryView& entry() const { return entry_; }
  /// The leaf of the last entry.
  [[nodiscard]] const crypto::Digest& leaf() const { return leaf_; }
  [[nodiscard]] const std::optional<SealedCheckpoint>& last_checkpoint() const { return last_checkpoint_; }
  [[nodiscard]] std::uint64_t checkpoints() const { return checkpoints_; }
  /// Entries behind the last checkpoint.
  [[nodiscard]] std::uint64_t unsealed_entries() const {
    return entries() - (last_checkpoint_ ? last_checkpoint_->checkpoint.size : 0);
  }

 private:
  Result<Line> add_checkpoint(std::string_view line);

  std::string origin_;
  crypto::MerkleHasher hasher_;
  crypto::MerkleTree tree_;
  EntryView entry_;
  crypto::Digest leaf_{};
  std::optional<SealedCheckpoint> last_checkpoint_;
  std::uint64_t checkpoints_ = 0;
};

}  // namespace hive::audit
