#include "config/address.h"

#include <gtest/gtest.h>

namespace hive::config {
namespace {

TEST(ParseListenAddress, ReadsHostAndPort) {
  EXPECT_EQ(parse_listen_address(":2222")->host, "");
  EXPECT_EQ(parse_listen_address(":2222")->port, 2222);
  EXPECT_EQ(parse_listen_address("127.0.0.1:0")->port, 0);
  EXPECT_EQ(parse_listen_address("[::]:8443")->host, "::");
  EXPECT_EQ(parse_listen_address("gw.example:1")->host, "gw.example");
}

TEST(ParseListenAddress, RefusesWhatIsNotAnAddress) {
  for (const char* text : {"", "2222", "host", "[::]", "[]:1", ":65536", ":-1", ":+1", ":", ":x", "::1:80",
                           "300.1.1.1:1", "http://a:1", "a b:1", "[::1]x:1"}) {
    EXPECT_FALSE(parse_listen_address(text)) << text;
  }
}

TEST(IsLoopbackLiteral, KnowsTheLoopbackNetworksAndTrustsNoName) {
  for (const char* host : {"127.0.0.1", "127.255.0.9", "::1"}) {
    EXPECT_TRUE(is_loopback_literal(host)) << host;
  }
  for (const char* host : {"", "localhost", "0.0.0.0", "::", "10.0.0.1", "127.0.0.1.example", "127.1"}) {
    EXPECT_FALSE(is_loopback_literal(host)) << host;
  }
}

}  // namespace
}  // namespace hive::config
