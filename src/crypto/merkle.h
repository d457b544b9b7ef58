#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "crypto/sha256.h"

/// The Merkle tree of RFC 6962 section 2.1 (the same as RFC 9162 section 2.1): leaves and nodes are hashed with
/// different prefixes, so that neither can stand for the other.
namespace hive::crypto {

/// Hashes leaves and nodes; keeps one hasher, so make one and use it again. Not thread-safe.
class MerkleHasher {
 public:
  /// SHA-256(0x00 || content).
  Digest leaf(std::string_view content);
  /// SHA-256(0x01 || left || right).
  Digest node(const Digest& left, const Digest& right);

 private:
  Sha256 hasher_;
};

/// The root of a growing list of leaves; keeps one hash for each full subtree, so O(log n). Not thread-safe.
class MerkleTree {
 public:
  void add(MerkleHasher& hasher, const Digest& leaf);
  [[nodiscard]] std::uint64_t size() const { return size_; }
  /// The root of what was added; SHA-256 of nothing for the empty tree.
  [[nodiscard]] Digest root(MerkleHasher& hasher) const;

 private:
  std::uint64_t size_ = 0;
  std::vector<Digest> subtrees_;  // one for each bit set in size_, largest first
};

/// The leaves from `begin` up to, not including, `end`.
struct LeafRange {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  bool operator==(const LeafRange&) const = default;
};

/// The subtrees whose roots are the inclusion proof of leaf `index` in a tree of `size`, in the order of the proof.
/// Empty unless index < size.
std::vector<LeafRange> inclusion_ranges(std::uint64_t index, std::uint64_t size);

/// The same for the proof that a tree of `new_size` begins with the tree of `old_size`. Empty unless
/// 0 < old_size < new_size.
std::vector<LeafRange> consistency_ranges(std::uint64_t old_size, std::uint64_t new_size);

/// Computes the roots of ranges while all leaves pass by once, so that a proof costs O(log n) memory. Not thread-safe.
class RangeRoots {
 public:
  explicit RangeRoots(std::vector<LeafRange> ranges);
  /// Takes the leaves from number 0 on, in order.
  void add(MerkleHasher& hasher, const Digest& leaf);
  /// The roots, in the order in which the ranges were given; a range whose leaves have not all passed is an error.
  Result<std::vector<Digest>> finish(MerkleHasher& hasher) const;

 private:
  struct Part {
    LeafRange range;
    MerkleTree tree;
  };
  std::uint64_t next_ = 0;
  std::vector<Part> parts_;
  std::vector<size_t> by_begin_;  // indexes into parts_
  size_t current_ = 0;            // index into by_begin_
};

/// Checks an inclusion proof (RFC 9162 section 2.1.3.2). Fails with `corrupt` and a reason.
Result<void> check_inclusion(const Digest& leaf, std::uint64_t index, std::uint64_t size, std::span<const Digest> proof,
                             const Digest& root);

/// Checks a consistency proof (RFC 9162 section 2.1.4.2). Equal sizes need an empty proof and equal roots; an empty old
/// tree is refused, because everything is consistent with it and a proof says nothing.
Result<void> check_consistency(std::uint64_t old_size, const Digest& old_root, std::uint64_t new_size,
                               const Digest& new_root, std::span<const Digest> proof);

}  // namespace hive::crypto
