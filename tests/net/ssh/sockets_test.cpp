#include "net/ssh/sockets.h"

#include <cstring>

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <netinet/in.h>

namespace hive::net::ssh {
namespace {

using testing::HasSubstr;

TEST(ListenAddressTest, TakesHostsAddressesAndBarePorts) {
  const auto plain = parse_listen_address("gw.example:2222");
  ASSERT_TRUE(plain);
  EXPECT_EQ(plain->host, "gw.example");
  EXPECT_EQ(plain->port, 2222);
  const auto any = parse_listen_address(":0");
  ASSERT_TRUE(any);
  EXPECT_EQ(any->host, "");
  const auto v6 = parse_listen_address("[::1]:22");
  ASSERT_TRUE(v6);
  EXPECT_EQ(v6->host, "::1");
  EXPECT_EQ(v6->port, 22);
}

TEST(ListenAddressTest, RefusesTheRestWithOneClearLine) {
  for (const char* bad :
       {"", "2222", "host:", "host:65536", "host:-1", "host:22x", "::1:22", "[]:22", "[::1:22", "host: 22"}) {
    const auto parsed = parse_listen_address(bad);
    ASSERT_FALSE(parsed) << bad;
    EXPECT_EQ(parsed.error().code, ErrorCode::invalid_argument);
    EXPECT_THAT(parsed.error().message, HasSubstr("listen address")) << bad;
    EXPECT_THAT(parsed.error().message, HasSubstr("HOST:PORT")) << bad;
  }
}

TEST(ListenAddressTest, AnAddressInUseIsNamed) {
  const auto first = listen_on({"127.0.0.1", 0});
  ASSERT_TRUE(first);
  const auto second = listen_on({"127.0.0.1", first->port});
  ASSERT_FALSE(second);
  EXPECT_THAT(second.error().message, HasSubstr("listen on 127.0.0.1:" + std::to_string(first->port)));
}

TEST(ListenAddressTest, WithoutAHostEveryAddressIsListenedOn) {
  const auto any = listen_on({"", 0});
  ASSERT_TRUE(any) << any.error().message;
  EXPECT_NE(any->port, 0);
}

SocketAddress describe_v6(const char* text) {
  sockaddr_storage storage{};
  auto& address = reinterpret_cast<sockaddr_in6&>(storage);
  address.sin6_family = AF_INET6;
  address.sin6_port = htons(4711);
  EXPECT_EQ(::inet_pton(AF_INET6, text, &address.sin6_addr), 1);
  return describe_address(storage);
}

TEST(DescribeAddressTest, WritesMappedAddressesAsIpv4) {
  const SocketAddress address = describe_v6("::ffff:192.0.2.7");
  EXPECT_EQ(address.address, "192.0.2.7");
  EXPECT_EQ(address.source, "192.0.2.7");
  EXPECT_EQ(address.port, 4711);
}

TEST(DescribeAddressTest, OneIpv6NetworkIsOneSource) {
  EXPECT_EQ(describe_v6("2001:db8:1:2:3:4:5:6").address, "2001:db8:1:2:3:4:5:6");
  EXPECT_EQ(describe_v6("2001:db8:1:2:3:4:5:6").source, "2001:db8:1:2::/64");
  EXPECT_EQ(describe_v6("2001:db8:1:2:ffff::1").source, "2001:db8:1:2::/64");
  EXPECT_NE(describe_v6("2001:db8:1:3::1").source, "2001:db8:1:2::/64");
}

}  // namespace
}  // namespace hive::net::ssh
