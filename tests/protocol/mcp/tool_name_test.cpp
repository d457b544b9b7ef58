#include <set>
#include <string>

#include <gtest/gtest.h>

#include "protocol/mcp/translation.h"

namespace hive::mcp {
namespace {

TEST(PublicToolNameTest, JoinsPrefixAndToolWhereThatIsAName) {
  EXPECT_EQ(public_tool_name("git", "read_file"), "git__read_file");
  EXPECT_EQ(public_tool_name("", "read_file"), "read_file");
  EXPECT_EQ(public_tool_name("a", "b__c"), "a__b__c");
  std::string exact(61, 't');
  EXPECT_EQ(public_tool_name("a", exact), "a__" + exact);
}

TEST(PublicToolNameTest, ShortensInAStableWayWhatIsNoName) {
  std::string name = public_tool_name("a", std::string(62, 't'));
  EXPECT_EQ(name.size(), 64U);
  EXPECT_EQ(name, public_tool_name("a", std::string(62, 't')));
  EXPECT_NE(name, public_tool_name("a", std::string(63, 't')));
  EXPECT_TRUE(name.starts_with("a__ttt"));
  EXPECT_EQ(name[53], '-');
  EXPECT_EQ(name.find_first_not_of("0123456789abcdef", 54), std::string::npos);
  std::string odd = public_tool_name("", "run caf\xc3\xa9");
  EXPECT_TRUE(odd.starts_with("run_caf__-")) << odd;
  EXPECT_TRUE(public_tool_name("a", "").starts_with("a__-"));
}

TEST(PublicToolNameTest, GivesNoTwoServersTheSameName) {
  std::set<std::string> names = {public_tool_name("a", "b__c"),    public_tool_name("a__b", "c"),
                                 public_tool_name("a", "_b"),      public_tool_name("a_", "b"),
                                 public_tool_name("a__b__c", "d"), public_tool_name("a__b", "c__d")};
  EXPECT_EQ(names.size(), 6U);
}

}  // namespace
}  // namespace hive::mcp
