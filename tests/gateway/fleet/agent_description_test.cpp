#include "gateway/fleet/agent_description.h"

#include <gtest/gtest.h>

namespace hive::fleet {
namespace {

TEST(ToolsListTest, KeepsTheWholeObjectOfEachTool) {
  auto tools = parse_tools_list(R"({"tools":[{"name":"a","description":"does a","x":[1, 2]}]})", 10);
  ASSERT_TRUE(tools.has_value());
  ASSERT_EQ(tools->size(), 1U);
  EXPECT_EQ((*tools)[0].raw, R"({"name":"a","description":"does a","x":[1, 2]})");
  EXPECT_EQ((*tools)[0].description, "does a");
}

TEST(ToolsListTest, LeavesOutNamesThatAreNoToolNamesAndRepetitions) {
  auto tools = parse_tools_list(
      R"({"tools":[{"name":"a"},{"name":"a"},{"name":"b c"},{"name":""},{"name":7},{"name":"caf\u00e9"}]})", 10);
  ASSERT_TRUE(tools.has_value());
  EXPECT_EQ(tools->size(), 1U);
}

TEST(ToolsListTest, RefusesListsThatAreNoListOrTooLong) {
  EXPECT_FALSE(parse_tools_list("{}", 10).has_value());
  EXPECT_FALSE(parse_tools_list(R"({"tools":{}})", 10).has_value());
  EXPECT_FALSE(parse_tools_list(R"({"tools":[1]})", 10).has_value());
  EXPECT_EQ(parse_tools_list(R"({"tools":[{"name":"a"},{"name":"b"}]})", 1).error().code,
            ErrorCode::resource_exhausted);
}

TEST(DescribeTest, ReadsTheReferencesTextAndOurStructuredContent) {
  AgentStatus status;
  describe(
      R"({"content":[{"type":"text","text":"{\"os_version\":\"Alpine\",\"running_services\":null,\"open_ports\":[\"22\",5]}"}]})",
      status);
  EXPECT_EQ(status.os_version, "Alpine");
  EXPECT_TRUE(status.running_services.empty());
  EXPECT_EQ(status.open_ports, std::vector<std::string>{"22"});
}

TEST(DescribeTest, BoundsWhatAnAgentSaysOfItself) {
  AgentStatus status;
  describe(R"({"structuredContent":{"os_version":)" + std::string("\"") + std::string(100'000, 'x') + "\"}}", status);
  EXPECT_LE(status.os_version.size(), 512U);
}

}  // namespace
}  // namespace hive::fleet
