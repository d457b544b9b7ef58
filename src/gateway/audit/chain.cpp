#include "gateway/audit/chain.h"

#include "base/strings.h"

namespace hive::audit {

Result<Chain::Line> Chain::add(std::string_view line) {
  if (is_checkpoint_line(line)) return add_checkpoint(line);
  entry_ = TRY_CONTEXT("not an entry", EntryView::parse(line));
  if (entry_.seq() != entries()) {
    return fail(ErrorCode::corrupt, "entry {} stands where entry {} belongs: entries were removed, added or swapped",
                entry_.seq(), entries());
  }
  leaf_ = hasher_.leaf(line);
  tree_.add(hasher_, leaf_);
  return Line::entry;
}

Result<Chain::Line> Chain::add_checkpoint(std::string_view line) {
  SealedCheckpoint sealed = TRY(parse_checkpoint_line(line));
  const Checkpoint& checkpoint = sealed.checkpoint;
  if (origin_.empty()) origin_ = checkpoint.origin;
  if (checkpoint.origin != origin_) {
    return fail(ErrorCode::corrupt, "checkpoint is of the log {}, expected {}", quote(checkpoint.origin),
                quote(origin_));
  }
  if (checkpoint.size != entries()) {
    return fail(ErrorCode::corrupt, "checkpoint for {} entries stands behind {}", checkpoint.size, entries());
  }
  if (checkpoint.root != root()) {
    return fail(ErrorCode::corrupt, "the Merkle root of the {} entries so far is not the one that was signed: {}",
                entries(), "at least one of them was changed");
  }
  last_checkpoint_ = std::move(sealed);
  ++checkpoints_;
  return Line::checkpoint;
}

}  // namespace hive::audit
