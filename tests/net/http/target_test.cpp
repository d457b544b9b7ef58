#include "net/http/target.h"

#include <gtest/gtest.h>

#include "net/http/message.h"

namespace hive::net::http {
namespace {

TEST(Target, SplitsPathAndQuery) {
  auto target = parse_target("/a%20b/c?x=%20&y#z", "GET");
  EXPECT_FALSE(target);
  target = parse_target("/a%20b/c?x=%20&y", "GET");
  ASSERT_TRUE(target);
  EXPECT_EQ(target->path, "/a b/c");
  EXPECT_EQ(target->query, "x=%20&y");
  EXPECT_EQ(target->authority, "");
}

TEST(Target, TakesTheHostFromTheAbsoluteForm) {
  auto target = parse_target("HTTP://[::1]:8080/x?y", "GET");
  ASSERT_TRUE(target);
  EXPECT_EQ(target->authority, "[::1]:8080");
  EXPECT_EQ(target->path, "/x");
  EXPECT_EQ(target->query, "y");
  target = parse_target("https://h?q", "GET");
  ASSERT_TRUE(target);
  EXPECT_EQ(target->authority, "h");
  EXPECT_EQ(target->path, "/");
  EXPECT_EQ(target->query, "q");
}

TEST(Target, AnAsteriskIsForOptionsAlone) {
  EXPECT_TRUE(parse_target("*", "OPTIONS"));
  EXPECT_FALSE(parse_target("*", "GET"));
}

TEST(Target, KeepsDotsThatAreNoSegments) {
  auto target = parse_target("/a..b/.c/d.", "GET");
  ASSERT_TRUE(target);
  EXPECT_EQ(target->path, "/a..b/.c/d.");
}

TEST(QueryParameter, IsDecodedAndTheFirstOneCounts) {
  Request request;
  request.query = "a=1+2%2B&b&=x&a=3&c=%ff&d=%&na%6De=v";
  EXPECT_EQ(request.query_parameter("a"), "1 2+");
  EXPECT_EQ(request.query_parameter("b"), "");
  EXPECT_EQ(request.query_parameter(""), "x");
  EXPECT_EQ(request.query_parameter("c"), std::nullopt);
  EXPECT_EQ(request.query_parameter("d"), std::nullopt);
  EXPECT_EQ(request.query_parameter("name"), "v");
  EXPECT_EQ(request.query_parameter("none"), std::nullopt);
}

TEST(RequestHeader, ARepeatedOneHasNoValue) {
  Request request;
  request.headers = {{"a", "1"}, {"b", "2"}, {"b", "3"}};
  EXPECT_EQ(request.header("a"), "1");
  EXPECT_EQ(request.header("b"), std::nullopt);
  EXPECT_EQ(request.header("c"), std::nullopt);
}

}  // namespace
}  // namespace hive::net::http
