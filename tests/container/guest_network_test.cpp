#include "container/guest_network.h"

#include <gmock/gmock.h>

namespace hive::container {
namespace {

using ::testing::HasSubstr;

Result<std::optional<GuestNetwork>> network(std::string_view text) {
  return guest_network(TRY(Conf::parse(text, "x.conf")));
}

TEST(GuestNetwork, ComesFromTheBridgeAndBothAddresses) {
  auto made = network("HOST_BRIDGE=hive0\nHOST_ADDRESS=10.42.0.1\nLOCAL_ADDRESS=10.42.0.7/24\n");
  ASSERT_TRUE(made && *made);
  EXPECT_EQ((*made)->bridge, "hive0");
  EXPECT_EQ((*made)->mac(), "02:48:0a:2a:00:07");
  EXPECT_THAT((*made)->network_file(), HasSubstr("Address=10.42.0.7/24\nGateway=10.42.0.1\nDNS=10.42.0.1\n"));
  EXPECT_THAT((*made)->network_file(), HasSubstr("MACAddress=02:48:0a:2a:00:07\n"));
  EXPECT_EQ((*made)->resolver_file(), "nameserver 10.42.0.1\n");
}

TEST(GuestNetwork, IsTheGuestsOwnMatterWithoutABridgeOrWithoutAddresses) {
  for (const char* text :
       {"PRIVATE_NETWORK=1\n", "HOST_BRIDGE=hive0\n", "HOST_BRIDGE=hive0\nHOST_ADDRESS=\nLOCAL_ADDRESS=\n"}) {
    auto made = network(text);
    ASSERT_TRUE(made) << text;
    EXPECT_FALSE(*made) << text;
  }
}

TEST(GuestNetwork, IsRefusedWhenTheAddressesAreHalfThereOrDoNotFit) {
  for (const char* addresses :
       {"HOST_ADDRESS=10.42.0.1\n", "LOCAL_ADDRESS=10.42.0.7/24\n",
        "HOST_ADDRESS=10.42.0.1\nLOCAL_ADDRESS=10.43.0.7/24\n", "HOST_ADDRESS=10.42.0.1\nLOCAL_ADDRESS=10.42.0.1/24\n",
        "HOST_ADDRESS=10.42.0.1\nLOCAL_ADDRESS=10.42.0.255/24\n",
        "HOST_ADDRESS=10.42.0.1\nLOCAL_ADDRESS=10.42.0.0/24\n", "HOST_ADDRESS=10.42.0.1\nLOCAL_ADDRESS=10.42.0.7/31\n",
        "HOST_ADDRESS=10.42.0.1\nLOCAL_ADDRESS=10.42.0.7/\n", "HOST_ADDRESS=10.42.0.1\nLOCAL_ADDRESS=10.42.0.7/x\n",
        "HOST_ADDRESS=10.42.0.1\nLOCAL_ADDRESS=\"10.42.0.7\n[Route]\"\n",
        "HOST_ADDRESS=gateway\nLOCAL_ADDRESS=10.42.0.7\n"}) {
    auto made = network(std::string("HOST_BRIDGE=hive0\n") + addresses);
    EXPECT_FALSE(made) << addresses;
  }
}

}  // namespace
}  // namespace hive::container
