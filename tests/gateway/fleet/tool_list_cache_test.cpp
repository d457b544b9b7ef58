#include "gateway/fleet/tool_list_cache.h"

#include <gtest/gtest.h>

#include "base/strings.h"
#include "crypto/sha256.h"

namespace hive::fleet {
namespace {

TEST(ToolListCacheTest, AgentsWithTheSameListShareIt) {
  ToolListCache cache(10);
  auto first = cache.get(R"({"tools":[{"name":"a"}]})");
  auto second = cache.get(R"({"tools":[{"name":"a"}]})");
  auto other = cache.get(R"({"tools":[{"name":"b"}]})");
  ASSERT_TRUE(first.has_value() && second.has_value() && other.has_value());
  EXPECT_EQ(*first, *second);
  EXPECT_NE(*first, *other);
}

TEST(ToolListCacheTest, AListThatNobodyHasIsForgotten) {
  ToolListCache cache(10);
  std::weak_ptr<const ToolList> forgotten;
  {
    auto list = cache.get(R"({"tools":[{"name":"a"}]})");
    ASSERT_TRUE(list.has_value());
    forgotten = *list;
  }
  EXPECT_TRUE(forgotten.expired());
  EXPECT_TRUE(cache.get(R"({"tools":[{"name":"a"}]})").has_value());
}

TEST(ToolListCacheTest, FindsAListByItsDigestWhileSomebodyHasIt) {
  ToolListCache cache(10);
  const std::string text = R"({"tools":[{"name":"a"}]})";
  const std::string digest = to_hex(crypto::sha256(text));
  EXPECT_EQ(cache.find(digest), nullptr);
  auto list = cache.get(text);
  ASSERT_TRUE(list.has_value());
  EXPECT_EQ(cache.find(digest), *list);
  list->reset();
  EXPECT_EQ(cache.find(digest), nullptr);
}

TEST(ToolListCacheTest, RefusesWhatIsNoList) {
  ToolListCache cache(10);
  EXPECT_FALSE(cache.get("{}").has_value());
}

TEST(ToolListCacheTest, RefusesAListThatWouldTakeTooMuchMemory) {
  ToolListCache cache(10);
  auto list = cache.get(fmt::format(R"({{"tools":[{{"name":"a","description":"{}"}}]}})",
                                    std::string(ToolListCache::max_list_bytes, 'x')));
  ASSERT_FALSE(list.has_value());
  EXPECT_EQ(list.error().code, ErrorCode::resource_exhausted);
}

}  // namespace
}  // namespace hive::fleet
