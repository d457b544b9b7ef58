#include "config/duplicate_key.h"

#include <gtest/gtest.h>

namespace hive::config {
namespace {

TEST(FindDuplicateKey, FindsAKeyThatIsRepeatedInItsObject) {
  std::optional<DuplicateKey> found = find_duplicate_key(R"({"a":1,"b":[{"c":1,"c":2}]})");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->first, 13U);
  EXPECT_EQ(found->second, 19U);
}

TEST(FindDuplicateKey, SeesThroughEscapes) {
  EXPECT_TRUE(find_duplicate_key(R"({"a":1,"\u0061":2})"));
}

TEST(FindDuplicateKey, LetsOtherObjectsAndStringsHaveTheSameWord) {
  EXPECT_FALSE(find_duplicate_key(R"({"a":{"a":"a"},"b":[{"x":1},{"x":2}],"c":["a","a"]})"));
}

TEST(FindDuplicateKey, GivesUpOnWhatIsNotJson) {
  EXPECT_FALSE(find_duplicate_key(R"({"a)"));
  EXPECT_FALSE(find_duplicate_key("}}"));
  EXPECT_FALSE(find_duplicate_key(R"("a":"a":)"));
  EXPECT_FALSE(find_duplicate_key(""));
}

}  // namespace
}  // namespace hive::config
