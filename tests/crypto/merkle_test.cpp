#include "crypto/merkle.h"

#include <array>
#include <string>

#include <gtest/gtest.h>

#include "base/strings.h"

namespace hive::crypto {
namespace {

// The vectors that implementations of RFC 6962 share: eight leaves, the roots of their prefixes, and some proofs.
constexpr std::array<std::string_view, 8> leaves_hex = {
    "", "00", "10", "2021", "3031", "40414243", "5051525354555657", "606162636465666768696a6b6c6d6e6f"};
constexpr std::array<std::string_view, 8> roots_hex = {
    "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
    "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
    "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
    "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
    "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
    "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
    "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328"};

std::vector<std::string> to_hex(const std::vector<Digest>& digests) {
  std::vector<std::string> texts;
  for (const Digest& digest : digests)
    texts.push_back(hive::to_hex(digest));
  return texts;
}

std::vector<Digest> known_leaves() {
  MerkleHasher hasher;
  std::vector<Digest> leaves;
  for (std::string_view hex : leaves_hex)
    leaves.push_back(hasher.leaf(as_text(from_hex(hex).value())));
  return leaves;
}

std::vector<Digest> numbered_leaves(size_t count) {
  MerkleHasher hasher;
  std::vector<Digest> leaves;
  for (size_t i = 0; i < count; ++i)
    leaves.push_back(hasher.leaf(std::to_string(i)));
  return leaves;
}

Digest root_of(std::span<const Digest> leaves) {
  MerkleHasher hasher;
  MerkleTree tree;
  for (const Digest& leaf : leaves)
    tree.add(hasher, leaf);
  return tree.root(hasher);
}

std::vector<Digest> proof_for(std::vector<LeafRange> ranges, std::span<const Digest> leaves) {
  MerkleHasher hasher;
  RangeRoots roots(std::move(ranges));
  for (const Digest& leaf : leaves)
    roots.add(hasher, leaf);
  return roots.finish(hasher).value();
}

TEST(MerkleTree, HasTheKnownRoots) {
  EXPECT_EQ(hive::to_hex(root_of({})), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  auto leaves = known_leaves();
  for (size_t size = 1; size <= leaves.size(); ++size)
    EXPECT_EQ(hive::to_hex(root_of(std::span(leaves).first(size))), roots_hex[size - 1]) << size;
}

TEST(MerkleTree, BuildsTheKnownProofs) {
  auto leaves = known_leaves();
  EXPECT_EQ(to_hex(proof_for(inclusion_ranges(0, 8), leaves)),
            (std::vector<std::string>{"96a296d224f285c67bee93c30f8a309157f0daa35dc5b87e410b78630a09cfc7",
                                      "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
                                      "6b47aaf29ee3c2af9af889bc1fb9254dabd31177f16232dd6aab035ca39bf6e4"}));
  EXPECT_EQ(to_hex(proof_for(inclusion_ranges(5, 8), leaves)),
            (std::vector<std::string>{"bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b",
                                      "ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0",
                                      "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7"}));
  EXPECT_EQ(to_hex(proof_for(consistency_ranges(6, 8), leaves)),
            (std::vector<std::string>{"0ebc5d3437fbe2db158b9f126a1d118e308181031d0a949f8dededebc558ef6a",
                                      "ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0",
                                      "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7"}));
}

TEST(MerkleProof, EveryEntryOfEverySizeCanBeProved) {
  auto leaves = numbered_leaves(40);
  for (size_t size = 1; size <= leaves.size(); ++size) {
    Digest root = root_of(std::span(leaves).first(size));
    for (size_t index = 0; index < size; ++index) {
      auto proof = proof_for(inclusion_ranges(index, size), leaves);
      EXPECT_TRUE(check_inclusion(leaves[index], index, size, proof, root)) << index << " of " << size;
    }
  }
}

TEST(MerkleProof, EveryPrefixOfEverySizeCanBeProved) {
  auto leaves = numbered_leaves(40);
  for (size_t size = 1; size <= leaves.size(); ++size) {
    for (size_t old_size = 1; old_size <= size; ++old_size) {
      auto proof = proof_for(consistency_ranges(old_size, size), leaves);
      EXPECT_TRUE(check_consistency(old_size, root_of(std::span(leaves).first(old_size)), size,
                                    root_of(std::span(leaves).first(size)), proof))
          << old_size << " of " << size;
    }
  }
}

// Row 154: everything about a forged proof that can be wrong.
TEST(MerkleProof, AForgedInclusionProofIsRefused) {
  auto leaves = numbered_leaves(11);
  Digest root = root_of(leaves);
  auto proof = proof_for(inclusion_ranges(6, 11), leaves);
  ASSERT_TRUE(check_inclusion(leaves[6], 6, 11, proof, root));

  auto shorter = proof;
  shorter.pop_back();
  EXPECT_FALSE(check_inclusion(leaves[6], 6, 11, shorter, root));
  auto longer = proof;
  longer.push_back(proof[0]);
  EXPECT_FALSE(check_inclusion(leaves[6], 6, 11, longer, root));
  EXPECT_FALSE(check_inclusion(leaves[6], 5, 11, proof, root));
  EXPECT_FALSE(check_inclusion(leaves[5], 6, 11, proof, root));
  EXPECT_FALSE(check_inclusion(leaves[6], 11, 11, proof, root));
  EXPECT_FALSE(check_inclusion(leaves[6], 0, 0, {}, root));
  EXPECT_FALSE(check_inclusion(leaves[6], 6, 8, proof, root));
  EXPECT_FALSE(check_inclusion(leaves[6], 6, 17, proof, root));
  for (size_t i = 0; i < proof.size(); ++i) {
    auto changed = proof;
    changed[i][0] ^= 1;
    EXPECT_FALSE(check_inclusion(leaves[6], 6, 11, changed, root)) << i;
  }
}

TEST(MerkleProof, ANodeCannotPassForALeaf) {
  MerkleHasher hasher;
  auto leaves = numbered_leaves(4);
  Digest left = hasher.node(leaves[0], leaves[1]);
  Digest right = hasher.node(leaves[2], leaves[3]);
  Digest root = root_of(leaves);
  std::string forged(as_text(leaves[0]));
  forged += as_text(leaves[1]);
  EXPECT_FALSE(check_inclusion(hasher.leaf(forged), 0, 2, std::vector{right}, root));
  EXPECT_NE(hasher.leaf(forged), left);
}

TEST(MerkleProof, AForgedConsistencyProofIsRefused) {
  auto leaves = numbered_leaves(13);
  Digest old_root = root_of(std::span(leaves).first(6));
  Digest root = root_of(leaves);
  auto proof = proof_for(consistency_ranges(6, 13), leaves);
  ASSERT_TRUE(check_consistency(6, old_root, 13, root, proof));

  auto shorter = proof;
  shorter.pop_back();
  EXPECT_FALSE(check_consistency(6, old_root, 13, root, shorter));
  auto longer = proof;
  longer.push_back(proof[0]);
  EXPECT_FALSE(check_consistency(6, old_root, 13, root, longer));
  EXPECT_FALSE(check_consistency(6, old_root, 13, root, {}));
  EXPECT_FALSE(check_consistency(13, root, 6, old_root, proof));
  EXPECT_FALSE(check_consistency(0, root_of({}), 13, root, {}));
  EXPECT_FALSE(check_consistency(6, root, 13, root, proof));
  EXPECT_FALSE(check_consistency(6, old_root, 13, old_root, proof));
  EXPECT_FALSE(check_consistency(13, root, 13, old_root, {}));
  EXPECT_FALSE(check_consistency(13, root, 13, root, proof));
  EXPECT_TRUE(check_consistency(13, root, 13, root, {}));
}

TEST(MerkleProof, RangesOfWhatIsNotThereAreEmptyOrRefused) {
  EXPECT_TRUE(inclusion_ranges(3, 3).empty());
  EXPECT_TRUE(consistency_ranges(0, 3).empty());
  EXPECT_TRUE(consistency_ranges(3, 3).empty());
  MerkleHasher hasher;
  RangeRoots roots(inclusion_ranges(0, 8));
  for (const Digest& leaf : numbered_leaves(7))
    roots.add(hasher, leaf);
  EXPECT_FALSE(roots.finish(hasher));
}

}  // namespace
}  // namespace hive::crypto
