#include "gateway/audit/batch.h"

#include "gateway/audit/checkpoint.h"
#include "gateway/audit/entry.h"

namespace hive::audit {

Result<void> BatchWriter::write(WriterQueue& queue, WallTime now, bool ssh_signature) {
  constexpr size_t kept_bytes = size_t{8} << 20;
  crypto::MerkleTree tree = tree_;
  lines_.clear();
  if (lines_.capacity() > kept_bytes) lines_.shrink_to_fit();
  std::string_view bodies = queue.bodies();
  for (const WriterQueue::Item& item : queue.items()) {
    size_t begin = lines_.size();
    append_entry_head(lines_, tree.size());
    lines_ += bodies.substr(0, item.body_bytes);
    bodies.remove_prefix(item.body_bytes);
    tree.add(hasher_, hasher_.leaf(std::string_view(lines_).substr(begin)));
    lines_ += '\n';
  }
  Checkpoint checkpoint{origin_, tree.size(), tree.root(hasher_), format_rfc3339(now)};
  lines_ += checkpoint_line(seal(std::move(checkpoint), key_, ssh_signature));
  lines_ += '\n';
  TRY(file_.append(lines_));
  tree_ = std::move(tree);
  return {};
}

}  // namespace hive::audit
