#include <array>

#include <gtest/gtest.h>

#include "protocol/mcp/message.h"

namespace hive::mcp {
namespace {

TEST(WithMembersTest, ReplacesAddsAndRemovesAndKeepsTheRestByteForByte) {
  std::string_view object = R"({ "a" : 1.0e+2,"b":"\u0041" , "c":[ ]})";
  EXPECT_EQ(with_members(object, std::array{MemberChange{"b", "2"}}), R"({ "a" : 1.0e+2,"b":2, "c":[ ]})");
  EXPECT_EQ(with_members(object, std::array{MemberChange{"d", "2"}}), R"({ "a" : 1.0e+2,"b":"\u0041", "c":[ ],"d":2})");
  EXPECT_EQ(with_members(object, std::array{MemberChange{"a", ""}}), R"({"b":"\u0041", "c":[ ]})");
  EXPECT_EQ(with_members(object, std::array{MemberChange{"c", ""}}), R"({ "a" : 1.0e+2,"b":"\u0041"})");
  EXPECT_EQ(with_members(object, {}), R"({ "a" : 1.0e+2,"b":"\u0041", "c":[ ]})");
}

TEST(WithMembersTest, FindsAKeyThatIsWrittenWithEscapes) {
  EXPECT_EQ(with_members(R"({"\u0061":1,"b":2})", std::array{MemberChange{"a", ""}}), R"({"b":2})");
}

TEST(WithMembersTest, StartsFromNothing) {
  EXPECT_EQ(with_members("", {}), "{}");
  EXPECT_EQ(with_members(" { } ", std::array{MemberChange{"a", ""}}), "{}");
  EXPECT_EQ(with_members("{}", std::array{MemberChange{"k\"", "1"}, MemberChange{"l", "2"}}), R"({"k\"":1,"l":2})");
  EXPECT_EQ(with_members("[1]", std::array{MemberChange{"a", "1"}}), R"({"a":1})");
}

TEST(WithMembersTest, CanRemoveEverything) {
  EXPECT_EQ(with_members(R"({"a":1,"b":2})", std::array{MemberChange{"a", ""}, MemberChange{"b", ""}}), "{}");
}

}  // namespace
}  // namespace hive::mcp
