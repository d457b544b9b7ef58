#include <filesystem>

#include <gtest/gtest.h>

#include "priv/container_conf.h"
#include "switch_fixture.h"

namespace hive::priv {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::StartsWith;

using WriteFlagsTest = SwitchTest;

TEST_F(WriteFlagsTest, S05_S07_TheFlagsAreTheRequestsBindsInOrder) {
  WriteFlagsRequest request = flags_request();
  request.binds[1].read_only = true;
  ASSERT_TRUE(write_flags(request).has_value());
  std::string agents = "/var/lib/hyperhive/agents/iris/";
  std::string id = read(host("/var/lib/hive-priv/machine-id/h-iris")).substr(0, 32);
  EXPECT_EQ(conf_value("EXTRA_NSPAWN_FLAGS"),
            "--ephemeral --link-journal=no --uuid=" + id + " --drop-capability=CAP_LINUX_IMMUTABLE --bind=" + agents +
                "state:/agents/iris/state --bind-ro=" + agents + "work:/agents/iris/work --bind=" + agents +
                "harness:/agents/iris/harness --bind=" + agents + "claude:/home/iris/.claude");
  EXPECT_EQ(conf_value("PRIVATE_NETWORK"), "1");
  EXPECT_EQ(conf_value("HOST_BRIDGE"), "hive0");
  EXPECT_EQ(conf_value("HOST_ADDRESS"), "10.42.0.1");
  EXPECT_EQ(conf_value("LOCAL_ADDRESS"), "10.42.0.2/24");
  EXPECT_THAT(conf(), StartsWith("# made by the operator\nSYSTEM_PATH=/nix/store/abc-nixos-system\nPRIVATE_NETWORK=1\n"
                                 "HOST_BRIDGE=hive0\nAUTO_START=0\n"));
}

TEST_F(WriteFlagsTest, AConfigurationThatARebuildPutsBackIsWrittenAnewWithoutASecondSwitch) {
  make_persistent_root();
  std::string original = conf();
  expect_switched(write_flags());
  std::string address = *conf_value("LOCAL_ADDRESS");
  write(host("/etc/nixos-containers/h-iris.conf"), original);
  auto again = write_flags();
  ASSERT_TRUE(again.has_value());
  EXPECT_THAT(again->result, HasSubstr(R"("switched":false)"));
  EXPECT_EQ(conf_value("LOCAL_ADDRESS"), address);
  expect_state_after_switch();
}

TEST_F(WriteFlagsTest, AConfigurationThatIsALinkIntoTheStoreIsReplacedAndNotFollowed) {
  fs::path store = host("/nix/store/abc/h-iris.conf");
  write(store, conf(), 0444);
  fs::remove(host("/etc/nixos-containers/h-iris.conf"));
  fs::create_symlink(store, host("/etc/nixos-containers/h-iris.conf"));
  std::string before = read(store);
  ASSERT_TRUE(write_flags().has_value());
  EXPECT_TRUE(fs::is_regular_file(fs::symlink_status(host("/etc/nixos-containers/h-iris.conf"))));
  EXPECT_EQ(read(store), before);
  EXPECT_EQ(conf_value("SYSTEM_PATH"), "/nix/store/abc-nixos-system");
}

TEST_F(WriteFlagsTest, Q12_ABindWhoseSourceIsMissingIsRefused) {
  make_persistent_root();
  fs::remove(agent("/claude"));
  auto outcome = write_flags();
  ASSERT_FALSE(outcome.has_value());
  EXPECT_EQ(outcome.error().code, Code::unsafe_path);
  EXPECT_THAT(outcome.error().message, HasSubstr("binds[3].host_path"));
  EXPECT_FALSE(fs::exists(agent("/claude")));
  EXPECT_TRUE(old_roots().empty());
}

TEST_F(WriteFlagsTest, C03_AContainerWithoutAConfigurationDoesNotExist) {
  WriteFlagsRequest request = flags_request();
  request.container = "h-eve";
  request.binds.clear();
  EXPECT_EQ(write_flags(request).error().code, Code::no_such_container);
  EXPECT_FALSE(fs::exists(host("/var/lib/hive-priv/locks/h-eve"))) << "a name that nobody has leaves no trace";
}

TEST_F(WriteFlagsTest, AConfigurationThatOthersMayWriteIsNotRead) {
  fs::permissions(host("/etc/nixos-containers/h-iris.conf"), fs::perms(0666));
  EXPECT_EQ(write_flags().error().code, Code::unsafe_path);
}

TEST_F(WriteFlagsTest, FlagsOfTheHostsOwnerComeFromAFileBesideTheConfiguration) {
  write(host("/etc/nixos-containers/h-iris.extra"), "--setenv=TZ=UTC\n--bind-ro=/usr/share/zoneinfo\n");
  ASSERT_TRUE(write_flags().has_value());
  EXPECT_THAT(*conf_value("EXTRA_NSPAWN_FLAGS"), ::testing::EndsWith(" --setenv=TZ=UTC --bind-ro=/usr/share/zoneinfo"));
  for (std::string_view bad : {"--ephemeral", "--uuid=1", "no-flag", "--x=$(id)", "--y='a'"}) {
    write(host("/etc/nixos-containers/h-iris.extra"), bad);
    EXPECT_FALSE(write_flags().has_value()) << bad;
  }
  write(host("/etc/nixos-containers/h-iris.extra"), "--setenv=A=1", 0666);
  EXPECT_FALSE(write_flags().has_value());
}

TEST_F(WriteFlagsTest, AddressesAreGivenOnceAndNeverTwice) {
  ASSERT_TRUE(write_flags().has_value());
  EXPECT_EQ(conf_value("LOCAL_ADDRESS"), "10.42.0.2/24");
  write(host("/etc/nixos-containers/h-eve.conf"), "LOCAL_ADDRESS=10.42.0.2/24\n");
  write(host("/etc/nixos-containers/forge.conf"), "LOCAL_ADDRESS=10.42.0.3\n");
  fs::create_directories(host("/var/lib/nixos-containers/h-eve"));
  WriteFlagsRequest request = flags_request();
  request.container = "h-eve";
  request.binds.clear();
  ASSERT_TRUE(write_flags(request).has_value());
  EXPECT_THAT(read(host("/etc/nixos-containers/h-eve.conf")), HasSubstr("LOCAL_ADDRESS=\"10.42.0.4/24\""));
  settings_.bridges["hive0"] = *parse_ipv4_network("10.42.0.0/30");
  EXPECT_EQ(write_flags(request).error().code, Code::limit_reached);
}

TEST_F(WriteFlagsTest, Q10_KeysOfOtherNetworksAreCleared) {
  write(host("/etc/nixos-containers/h-iris.conf"),
        "HOST_PORT=tcp:80:80\nHOST_ADDRESS6=fd00::1\nLOCAL_ADDRESS6=fd00::2\nHOST_BRIDGE=lan0\nPRIVATE_USERS=no\n");
  ASSERT_TRUE(write_flags().has_value());
  for (std::string_view key : {"HOST_PORT", "HOST_ADDRESS6", "LOCAL_ADDRESS6"})
    EXPECT_EQ(conf_value(key), std::nullopt) << key;
  EXPECT_EQ(conf_value("HOST_BRIDGE"), "hive0");
  EXPECT_EQ(conf_value("PRIVATE_USERS"), "no");
}

}  // namespace
}  // namespace hive::priv
