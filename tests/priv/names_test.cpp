#include "priv/names.h"

#include <gtest/gtest.h>

namespace hive::priv {
namespace {

using namespace std::string_view_literals;

TEST(NamesTest, C3_OnlyAgentsContainersAreNames) {
  for (std::string_view good : {"h-a", "h-iris", "h-a1-b2", "h-123456789"})
    EXPECT_TRUE(check_agent_container(good).has_value()) << good;
  const std::string long_name = "h-" + std::string(198, 'a');
  for (std::string_view bad : {""sv,           ".."sv,
                               "h-"sv,         "h-../../etc"sv,
                               "-x"sv,         "h-a/b"sv,
                               "h-a%i"sv,      "h-a@b"sv,
                               "h-a\0b"sv,     "h-a\n"sv,
                               "H-iris"sv,     "h-Iris"sv,
                               "h-\u0430bc"sv, "h--a"sv,
                               "h-a-"sv,       "h-1234567890"sv,
                               "forge"sv,      "iris"sv,
                               "h-a b"sv,      "h-a.b"sv,
                               "h-a_b"sv,      std::string_view(long_name)}) {
    EXPECT_FALSE(check_agent_container(bad).has_value()) << bad;
  }
}

TEST(NamesTest, ARefusalCutsAndEscapesTheName) {
  auto refused = check_agent_container("\x1b[31m" + std::string(500, 'x'));
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().message.find('\x1b'), std::string::npos);
  EXPECT_LT(refused.error().message.size(), 250U);
}

TEST(NamesTest, AnyContainerMayBeCheckedBeforeItsStart) {
  for (std::string_view good : {"forge", "h-iris", "Web_1"})
    EXPECT_TRUE(check_any_container(good).has_value()) << good;
  for (std::string_view bad : {""sv, ".."sv, "-x"sv, "a/b"sv, "a.b"sv, "a\0"sv})
    EXPECT_FALSE(check_any_container(bad).has_value()) << bad;
}

TEST(NamesTest, C5_PathsHoldNothingThatCouldBeReadInTwoWays) {
  EXPECT_TRUE(check_plain_path("/var/lib/hyperhive/agents/iris/work").has_value());
  for (std::string_view bad : {""sv,       "relative"sv, "/"sv,     "//a"sv,   "/a//b"sv, "/a/"sv,  "/a/../b"sv,
                               "/a/./b"sv, "/a b"sv,     "/a:b"sv,  "/a\\b"sv, "/a\"b"sv, "/a'b"sv, "/a*"sv,
                               "/a?"sv,    "/a[b]"sv,    "/a\nb"sv, "/a\0b"sv, "+/a"sv,   "/a$b"sv, "/\xc3\xa4"sv}) {
    EXPECT_FALSE(check_plain_path(bad).has_value()) << bad;
  }
  EXPECT_TRUE(check_plain_path("/" + std::string(254, 'a')).has_value());
  EXPECT_FALSE(check_plain_path("/" + std::string(255, 'a')).has_value());
}

TEST(NamesTest, C8_InterfacesAreInterfaces) {
  for (std::string_view good : {"hive0", "br-lan.1", "a", "123456789012345"})
    EXPECT_TRUE(check_interface(good).has_value()) << good;
  for (std::string_view bad : {"", ".", "..", "../x", "1234567890123456", "a b", "a/b", "a:b"})
    EXPECT_FALSE(check_interface(bad).has_value()) << bad;
}

TEST(NamesTest, BelowMeansAtAPartsBorder) {
  EXPECT_TRUE(is_at_or_below("/a/b", "/a/b"));
  EXPECT_TRUE(is_at_or_below("/a/b/c", "/a/b"));
  EXPECT_FALSE(is_at_or_below("/a/bc", "/a/b"));
  EXPECT_FALSE(is_at_or_below("/a", "/a/b"));
}

}  // namespace
}  // namespace hive::priv
