#include "crypto/merkle.h"

#include <algorithm>
#include <bit>
#include <numeric>

namespace hive::crypto {

namespace {

// The largest power of two smaller than `count` (RFC 6962: k); `count` is at least 2.
std::uint64_t split_point(std::uint64_t count) {
  return std::bit_floor(count - 1);
}

std::unexpected<Error> refused(std::string_view why) {
  return fail(ErrorCode::corrupt, "Merkle proof does not hold: {}", why);
}

}  // namespace

Digest MerkleHasher::leaf(std::string_view content) {
  hasher_.update(std::uint8_t{0});
  hasher_.update(content);
  return hasher_.finish();
}

Digest MerkleHasher::node(const Digest& left, const Digest& right) {
  std::array<std::uint8_t, 65> bytes{};
  bytes[0] = 1;
  std::ranges::copy(left, bytes.begin() + 1);
  std::ranges::copy(right, bytes.begin() + 33);
  hasher_.update(bytes);
  return hasher_.finish();
}

void MerkleTree::add(MerkleHasher& hasher, const Digest& leaf) {
  Digest node = leaf;
  // Every trailing one bit of the size is a full subtree that the new leaf completes to one of twice its size.
  for (std::uint64_t bits = size_; (bits & 1) != 0; bits >>= 1) {
    node = hasher.node(subtrees_.back(), node);
    subtrees_.pop_back();
  }
  subtrees_.push_back(node);
  ++size_;
}

Digest MerkleTree::root(MerkleHasher& hasher) const {
  if (subtrees_.empty()) return sha256(std::string_view());
  Digest root = subtrees_.back();
  for (size_t i = subtrees_.size() - 1; i > 0; --i)
    root = hasher.node(subtrees_[i - 1], root);
  return root;
}

std::vector<LeafRange> inclusion_ranges(std::uint64_t index, std::uint64_t size) {
  std::vector<LeafRange> ranges;
  if (index >= size) return ranges;
  LeafRange around{0, size};
  while (around.end - around.begin > 1) {
    std::uint64_t middle = around.begin + split_point(around.end - around.begin);
    if (index < middle) {
      ranges.push_back({middle, around.end});
      around.end = middle;
    } else {
      ranges.push_back({around.begin, middle});
      around.begin = middle;
    }
  }
  std::ranges::reverse(ranges);
  return ranges;
}

std::vector<LeafRange> consistency_ranges(std::uint64_t old_size, std::uint64_t new_size) {
  std::vector<LeafRange> ranges;
  if (old_size == 0 || old_size >= new_size) return ranges;
  // SUBPROOF of RFC 6962 section 2.1.2, from the root down.
  LeafRange around{0, new_size};
  while (around.end != old_size) {
    std::uint64_t middle = around.begin + split_point(around.end - around.begin);
    if (old_size <= middle) {
      ranges.push_back({middle, around.end});
      around.end = middle;
    } else {
      ranges.push_back({around.begin, middle});
      around.begin = middle;
    }
  }
  // The old tree itself is known to whoever checks; any smaller subtree at its edge is not.
  if (around.begin != 0) ranges.push_back(around);
  std::ranges::reverse(ranges);
  return ranges;
}

RangeRoots::RangeRoots(std::vector<LeafRange> ranges) {
  for (const LeafRange& range : ranges)
    parts_.push_back({range, {}});
  by_begin_.resize(parts_.size());
  std::iota(by_begin_.begin(), by_begin_.end(), size_t{0});
  std::ranges::sort(by_begin_, {}, [&](size_t i) { return parts_[i].range.begin; });
}

void RangeRoots::add(MerkleHasher& hasher, const Digest& leaf) {
  std::uint64_t index = next_++;
  while (current_ < by_begin_.size() && parts_[by_begin_[current_]].range.end <= index)
    ++current_;
  if (current_ == by_begin_.size()) return;
  Part& part = parts_[by_begin_[current_]];
  if (index >= part.range.begin) part.tree.add(hasher, leaf);
}

Result<std::vector<Digest>> RangeRoots::finish(MerkleHasher& hasher) const {
  std::vector<Digest> roots;
  for (const Part& part : parts_) {
    if (part.tree.size() != part.range.end - part.range.begin) {
      return fail(ErrorCode::invalid_argument, "{} entries are too few for the proof", next_);
    }
    roots.push_back(part.tree.root(hasher));
  }
  return roots;
}

Result<void> check_inclusion(const Digest& leaf, std::uint64_t index, std::uint64_t size, std::span<const Digest> proof,
                             const Digest& root) {
  if (index >= size) return refused(fmt::format("entry {} is not in a log of {} entries", index, size));
  MerkleHasher hasher;
  std::uint64_t first = index;
  std::uint64_t last = size - 1;
  Digest node = leaf;
  for (const Digest& sibling : proof) {
    if (last == 0) return refused("it has too many hashes");
    if ((first & 1) != 0 || first == last) {
      node = hasher.node(sibling, node);
      while ((first & 1) == 0 && first != 0) {
        first >>= 1;
        last >>= 1;
      }
    } else {
      node = hasher.node(node, sibling);
    }
    first >>= 1;
    last >>= 1;
  }
  if (last != 0) return refused("it has too few hashes");
  if (node != root) return refused("the entry does not lead to the signed root");
  return {};
}

Result<void> check_consistency(std::uint64_t old_size, const Digest& old_root, std::uint64_t new_size,
                               const Digest& new_root, std::span<const Digest> proof) {
  if (old_size == 0) return refused("the old log is empty, nothing can be shown about it");
  if (old_size > new_size)
    return refused(fmt::format("the old log has {} entries, the new one {}", old_size, new_size));
  if (old_size == new_size) {
    if (!proof.empty()) return refused("it has too many hashes");
    if (old_root != new_root) return refused("two logs of the same size have different roots");
    return {};
  }
  std::vector<Digest> path(proof.begin(), proof.end());
  if (path.empty()) return refused("it has too few hashes");
  // A full old tree is itself the first node, and proofs leave it out.
  if (std::has_single_bit(old_size)) path.insert(path.begin(), old_root);
  MerkleHasher hasher;
  std::uint64_t first = old_size - 1;
  std::uint64_t last = new_size - 1;
  while ((first & 1) != 0) {
    first >>= 1;
    last >>= 1;
  }
  Digest old_node = path[0];
  Digest new_node = path[0];
  for (size_t i = 1; i < path.size(); ++i) {
    if (last == 0) return refused("it has too many hashes");
    if ((first & 1) != 0 || first == last) {
      old_node = hasher.node(path[i], old_node);
      new_node = hasher.node(path[i], new_node);
      while ((first & 1) == 0 && first != 0) {
        first >>= 1;
        last >>= 1;
      }
    } else {
      new_node = hasher.node(new_node, path[i]);
    }
    first >>= 1;
    last >>= 1;
  }
  if (last != 0) return refused("it has too few hashes");
  if (old_node != old_root) return refused("it does not lead to the old root");
  if (new_node != new_root) return refused("it does not lead to the new root");
  return {};
}

}  // namespace hive::crypto
