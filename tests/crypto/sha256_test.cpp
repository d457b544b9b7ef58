#include "crypto/sha256.h"

#include <gtest/gtest.h>

#include "base/strings.h"

namespace hive::crypto {
namespace {

TEST(Sha256, AgreesWithTheStandardsExamples) {
  EXPECT_EQ(to_hex(sha256("")), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(to_hex(sha256("abc")), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(Sha256, TakesAMessageInPartsAndBeginsANewOneAfterwards) {
  Sha256 hasher;
  for (int round = 0; round < 2; ++round) {
    hasher.update("a");
    hasher.update(std::uint8_t{'b'});
    hasher.update("c");
    EXPECT_EQ(hasher.finish(), sha256("abc"));
  }
}

}  // namespace
}  // namespace hive::crypto
