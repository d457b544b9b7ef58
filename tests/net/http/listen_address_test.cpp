#include "net/http/listen_address.h"

#include <gtest/gtest.h>

#include "net/http/connection_limits.h"

namespace hive::net::http {
namespace {

TEST(ListenAddress, HasAHostAndAPort) {
  for (auto [text, host, port] :
       {std::tuple("127.0.0.1:8443", "127.0.0.1", 8443), std::tuple(":8443", "", 8443), std::tuple("[::1]:0", "::1", 0),
        std::tuple("[::]:8443", "::", 8443), std::tuple("gw.example:1", "gw.example", 1),
        std::tuple("[fe80::1%eth0]:65535", "fe80::1%eth0", 65535)}) {
    auto parsed = parse_listen_address(text);
    ASSERT_TRUE(parsed) << text;
    EXPECT_EQ(parsed->host, host);
    EXPECT_EQ(parsed->port, port);
  }
}

TEST(ListenAddress, ABadOneIsNamedWithTheRemedy) {
  for (const char* text : {"", "8443", "host", "host:", "host:x", "host:65536", "host:-1", "host:+1", "::1:8443",
                           "[::1:80", "[]:80", "host: 1"}) {
    auto parsed = parse_listen_address(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_NE(parsed.error().message.find("listen address \"" + std::string(text) + "\""), std::string::npos)
        << parsed.error().message;
  }
}

TEST(ConnectionSource, IsAnAddressOrAnIpv6Network) {
  EXPECT_EQ(source_of("192.0.2.1"), "192.0.2.1");
  EXPECT_EQ(source_of("2001:db8:1:2:3:4:5:6"), "2001:db8:1:2::/64");
  EXPECT_EQ(source_of("2001:db8:1:2::9"), "2001:db8:1:2::/64");
  EXPECT_EQ(source_of("fe80::1%eth0"), "fe80::/64");
}

TEST(ConnectionLimits, GivePlacesBack) {
  auto limits = std::make_shared<ConnectionLimits>(3, 2);
  auto first = limits->acquire("a");
  auto second = limits->acquire("a");
  EXPECT_TRUE(first && second);
  EXPECT_FALSE(limits->acquire("a"));
  auto third = limits->acquire("b");
  EXPECT_TRUE(third);
  EXPECT_FALSE(limits->acquire("c"));
  first.reset();
  EXPECT_TRUE(limits->acquire("c"));
  EXPECT_EQ(limits->total(), 2u);
}

}  // namespace
}  // namespace hive::net::http
