#include <gtest/gtest.h>

#include "base/strings.h"
#include "gateway/policy/authenticator.h"

namespace hive::policy {
namespace {

class ClientAddress : public testing::Test {
 protected:
  std::string operator()(std::string_view peer, std::optional<std::string_view> header) {
    return client_address(peer, header, *authenticator_);
  }

  ManualClock clock_;
  std::shared_ptr<const Authenticator> authenticator_ = [this] {
    config::GatewayConfig config;
    config.trusted_proxy_addresses = {"10.0.0.0/8", "::1"};
    return *Authenticator::create(config, clock_);
  }();
};

TEST_F(ClientAddress, IsThePeerWhereThePeerIsNoProxy) {
  EXPECT_EQ((*this)("192.0.2.1", "198.51.100.1"), "192.0.2.1");
  EXPECT_EQ((*this)("10.0.0.1", std::nullopt), "10.0.0.1");
}

TEST_F(ClientAddress, IsTheLastOneThatIsNoProxyOfOurs) {
  EXPECT_EQ((*this)("10.0.0.1", "198.51.100.1"), "198.51.100.1");
  EXPECT_EQ((*this)("::ffff:10.0.0.1", "203.0.113.9, 198.51.100.1 ,10.9.9.9"), "198.51.100.1");
  EXPECT_EQ((*this)("::1", "2001:db8::1, ::1, 10.1.1.1"), "2001:db8::1");
}

TEST_F(ClientAddress, WhatACallerInventedInFrontChangesNothing) {
  EXPECT_EQ((*this)("10.0.0.1", "<script>, 10.0.0.5, ,,, unknown, 198.51.100.1"), "198.51.100.1");
}

TEST_F(ClientAddress, HasOneSpelling) {
  for (const char* text : {"198.51.100.1", "198.51.100.1:4711", "::ffff:198.51.100.1", "[::ffff:198.51.100.1]:80"})
    EXPECT_EQ((*this)("10.0.0.1", text), "198.51.100.1") << text;
  for (const char* text : {"2001:DB8:0:0::1", "[2001:db8::1]", "[2001:db8::1]:443"})
    EXPECT_EQ((*this)("10.0.0.1", text), "2001:db8::1") << text;
}

TEST_F(ClientAddress, IsThePeerWhereTheHeaderIsBroken) {
  for (const char* text : {"", " ", ",", "198.51.100.1,", "unknown", "198.51.100", "198.51.100.1:x", "[2001:db8::1",
                           "[2001:db8::1]x", "[2001:db8::1]:", "2001:db8::1%eth0", "10.0.0.2", "10.0.0.2, 10.0.0.3"})
    EXPECT_EQ((*this)("10.0.0.1", text), "10.0.0.1") << text;
}

TEST_F(ClientAddress, LooksAtSoManyAddressesAndNoMore) {
  std::string header = "198.51.100.1";
  for (int i = 0; i < 31; ++i)
    header += ", 10.0.0.2";
  EXPECT_EQ((*this)("10.0.0.1", header), "198.51.100.1");
  EXPECT_EQ((*this)("10.0.0.1", header + ", 10.0.0.2"), "10.0.0.1");
}

}  // namespace
}  // namespace hive::policy
