#include "crypto/random.h"

#include <set>

#include <gtest/gtest.h>

namespace hive::crypto {
namespace {

TEST(Random, GivesHexadecimalTextOfTwoCharactersAByte) {
  std::string text = random_hex(16);
  EXPECT_EQ(text.size(), 32u);
  EXPECT_EQ(text.find_first_not_of("0123456789abcdef"), std::string::npos);
}

TEST(Random, NeverRepeatsItself) {
  std::set<std::string> seen;
  for (int i = 0; i < 1000; ++i)
    seen.insert(random_hex(16));
  EXPECT_EQ(seen.size(), 1000u);
}

}  // namespace
}  // namespace hive::crypto
