#include "priv/machine_id.h"

#include <filesystem>

#include <gtest/gtest.h>

#include "switch_fixture.h"

namespace hive::priv {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

using MachineIdTest = SwitchTest;

TEST_F(MachineIdTest, P01_P02_LinksInATemplateAreRefusedAndStay) {
  ASSERT_TRUE(write_flags().has_value());
  fs::remove(root("/etc/machine-id"));
  fs::create_symlink(folder_ / "victim/created", root("/etc/machine-id"));
  EXPECT_EQ(write_flags().error().code, Code::unsafe_path);
  EXPECT_TRUE(fs::is_symlink(root("/etc/machine-id")));
  fs::remove_all(root("/etc"));
  fs::create_directory_symlink(folder_ / "victim", root("/etc"));
  EXPECT_EQ(write_flags().error().code, Code::unsafe_path);
  fs::remove_all(root());
  fs::create_directory_symlink(folder_ / "victim", root());
  EXPECT_EQ(write_flags().error().code, Code::unsafe_path);
  EXPECT_TRUE(fs::is_symlink(root()));
  fs::remove(root());
}

TEST_F(MachineIdTest, S29_P18_TheMachineIdIsKeptIfItIsAValidOneOfItsOwn) {
  make_persistent_root();
  expect_switched(write_flags());
  EXPECT_EQ(read(root("/etc/machine-id")), std::string(old_id) + "\n");
  EXPECT_THAT(conf(), HasSubstr("--uuid=" + std::string(old_id)));
  ASSERT_TRUE(write_flags().has_value());
  EXPECT_EQ(read(root("/etc/machine-id")), std::string(old_id) + "\n");
}

TEST_F(MachineIdTest, P18_AForgedMachineIdIsReplaced) {
  const std::string of_another = "11112222333344445555666677778888";
  write(host("/var/lib/nixos-containers/h-eve/etc/machine-id"), of_another + "\n");
  for (std::string forged : {std::string("ffffffffffffffffffffffffffffffff"), of_another, std::string(32, '0'),
                             std::string("0123456789ABCDEF0123456789ABCDEF"), std::string("garbage"), std::string(),
                             std::string("uninitialized")}) {
    make_persistent_root();
    write(root("/etc/machine-id"), forged + "\n");
    fs::remove_all(host("/var/lib/hive-priv/machine-id"));
    write(host("/etc/nixos-containers/h-iris.conf"), "AUTO_START=0\n");
    ASSERT_TRUE(write_flags().has_value());
    std::string id = read(root("/etc/machine-id")).substr(0, 32);
    EXPECT_TRUE(is_machine_id(id)) << id;
    EXPECT_NE(id, forged);
    EXPECT_EQ(read(host("/var/lib/hive-priv/machine-id/h-iris")), id + "\n");
    EXPECT_EQ(status_of(host("/var/lib/hive-priv/machine-id/h-iris")).st_mode & 0777, 0600U);
  }
}

TEST_F(MachineIdTest, Trap_AnIdThatATemplateBringsIsReplacedByTheContainersOwn) {
  ASSERT_TRUE(write_flags().has_value());
  std::string id = read(root("/etc/machine-id"));
  write(root("/etc/machine-id"), "");
  ASSERT_TRUE(write_flags().has_value());
  EXPECT_EQ(read(root("/etc/machine-id")), id);
}

TEST_F(MachineIdTest, Trap_ADanglingMachineIdLinkOfAGuestNeverReachesTheHostsOwnFile) {
  fs::create_directories(root("/etc"));
  fs::create_directories(root("/var/lib/dbus"));
  fs::create_symlink("/etc/machine-id", root("/var/lib/dbus/machine-id"));
  fs::create_symlink(host("/etc/machine-id"), root("/etc/machine-id"));
  EXPECT_FALSE(write_flags().has_value() && fs::is_symlink(root("/etc/machine-id")));
}

}  // namespace
}  // namespace hive::priv
