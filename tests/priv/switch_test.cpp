#include "priv/switch.h"

#include <array>
#include <filesystem>
#include <thread>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <unistd.h>

#include "priv/machine_id.h"
#include "switch_fixture.h"

namespace hive::priv {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

TEST_F(SwitchTest, S12_to_S20_SavesARootThatPersistsAndThenAsksForAnEphemeralOne) {
  make_persistent_root();
  EXPECT_THAT(conf(), Not(HasSubstr("--ephemeral")));
  expect_switched(write_flags());
  EXPECT_EQ(status_of(salvage() / "home/iris/pre-switch.txt").st_uid, 1001U);
  EXPECT_EQ(status_of(salvage()).st_uid, 1001U);
  EXPECT_EQ(status_of(salvage()).st_mode & 07777, 0700U);
  EXPECT_FALSE(fs::exists(salvage() / "home/iris/.cache"));
  EXPECT_TRUE(fs::exists(old_roots()[0] / "tmp/cache-file"));
  EXPECT_THAT(old_roots()[0].filename().string(), StartsWith("h-iris.pre-ephemeral-"));
}

TEST_F(SwitchTest, S23_S24_TheSecondCallFindsNothingToDo) {
  make_persistent_root();
  expect_switched(write_flags());
  std::string before = conf();
  auto inode = status_of(host("/etc/nixos-containers/h-iris.conf")).st_ino;
  int asked = units_.asked();
  auto again = write_flags();
  ASSERT_TRUE(again.has_value());
  EXPECT_EQ(again->result, R"({"switched":false,"salvage":"none","conf_changed":false})");
  EXPECT_EQ(conf(), before);
  EXPECT_EQ(status_of(host("/etc/nixos-containers/h-iris.conf")).st_ino, inode) << "nothing is written";
  EXPECT_EQ(units_.asked(), asked) << "systemd isn't asked";
  expect_state_after_switch();
}

TEST_F(SwitchTest, ARootWithNothingButTheSkeletonIsNoReasonToSwitch) {
  for (std::string_view path : {"/usr/bin", "/etc", "/var/lib/private", "/root", "/agents/iris/work", "/proc", "/tmp"})
    fs::create_directories(root(path));
  write(root("/etc/machine-id"), "");
  fs::create_symlink("/usr/lib/os-release", root("/etc/os-release"));
  auto outcome = write_flags();
  ASSERT_TRUE(outcome.has_value()) << text_of(outcome);
  EXPECT_THAT(outcome->result, HasSubstr(R"("switched":false,"salvage":"none")"));
  EXPECT_TRUE(salvages().empty());
  EXPECT_TRUE(old_roots().empty());
  EXPECT_EQ(count_of(conf(), "--ephemeral"), 1U);
}

TEST_F(SwitchTest, ARootThatIsNotThereIsMade) {
  fs::remove_all(root());
  ASSERT_TRUE(write_flags().has_value());
  EXPECT_EQ(status_of(root()).st_mode & 07777, 0755U);
  EXPECT_TRUE(is_machine_id(read(root("/etc/machine-id")).substr(0, 32)));
}

TEST_F(SwitchTest, S21_S32_NixStateOfTheHomeIsCarriedToTheHost) {
  make_persistent_root();
  fs::path state = root("/home/iris/.local/state/nix/profiles");
  fs::create_directories(state);
  fs::create_symlink("/nix/store/abc-user-environment", state / "profile-1-link");
  fs::create_symlink("profile-1-link", state / "profile");
  expect_switched(write_flags());
  fs::path carried = host("/nix/var/nix/profiles/per-container/h-iris/per-user/iris/profiles");
  EXPECT_EQ(fs::read_symlink(carried / "profile"), "profile-1-link");
  EXPECT_EQ(fs::read_symlink(carried / "profile-1-link"), "/nix/store/abc-user-environment");
  EXPECT_EQ(status_of(carried).st_uid, 1001U) << "the guest's user must be able to add generations";
  EXPECT_EQ(status_of(host("/nix/var/nix/profiles/per-container")).st_mode & 0777, 0700U);
}

TEST_F(SwitchTest, P08_OnlyLinksIntoTheStoreOrToASiblingAreCarried) {
  make_persistent_root();
  fs::path state = root("/home/iris/.local/state/nix/profiles");
  fs::create_directories(state);
  fs::create_symlink(folder_ / "victim", state / "profile-9-link");
  fs::create_symlink("../../../../../etc/shadow", state / "profile");
  fs::create_symlink("/nix/store/../../etc", state / "up");
  write(state / "file", "x");
  expect_switched(write_flags());
  EXPECT_TRUE(names_in(host("/nix/var/nix/profiles/per-container/h-iris/per-user/iris/profiles")).empty());
}

TEST_F(SwitchTest, P08_ALinkInTheDestinationOfTheNixStateStopsTheSwitch) {
  make_persistent_root();
  fs::create_directories(root("/home/iris/.local/state/nix/profiles"));
  fs::create_symlink("/nix/store/abc-x", root("/home/iris/.local/state/nix/profiles/profile-1-link"));
  for (std::string_view planted : {"per-user", "per-user/iris", "per-user/iris/profiles"}) {
    fs::path link = host("/nix/var/nix/profiles/per-container/h-iris") / planted;
    fs::create_directories(link.parent_path());
    fs::create_directory_symlink(folder_ / "victim", link);
    auto outcome = write_flags();
    ASSERT_FALSE(outcome.has_value()) << planted;
    EXPECT_EQ(outcome.error().code, Code::unsafe_path);
    expect_untouched();
    fs::remove(link);
  }
  expect_switched(write_flags());
}

TEST_F(SwitchTest, P09_ALinkInTheHomeMeansThatTheStateHasMoved) {
  for (std::string_view planted : {"/home/iris/.local/state/nix", "/home/iris/.local/state", "/home/iris/.local"}) {
    make_persistent_root();
    fs::remove_all(root("/home/iris/.local"));
    fs::create_directories(root(planted).parent_path());
    fs::create_directory_symlink(folder_ / "victim", root(planted));
    ASSERT_TRUE(write_flags().has_value());
    EXPECT_FALSE(fs::exists(host("/nix/var/nix/profiles/per-container")));
    write(host("/etc/nixos-containers/h-iris.conf"), "AUTO_START=0\n");
  }
}

TEST_F(SwitchTest, P02_P06_HostileLinksInTheRootLeadNowhere) {
  make_persistent_root();
  fs::remove_all(root("/home/iris/.cache"));
  fs::create_directory_symlink(folder_ / "victim", root("/home/iris/.cache"));
  fs::create_directory_symlink(folder_ / "victim", root("/root"));
  fs::create_symlink(folder_ / "victim/secret", root("/home/iris/secret"));
  fs::remove(root("/etc/machine-id"));
  fs::create_symlink(host("/etc/machine-id"), root("/etc/machine-id"));
  expect_switched(write_flags());
  EXPECT_TRUE(fs::is_symlink(salvage() / "home/iris/secret"));
  EXPECT_NE(read(root("/etc/machine-id")), read(host("/etc/machine-id")));
}

TEST_F(SwitchTest, P07_ALinkInThePlaceOfTheWorkFolderStopsTheSwitch) {
  make_persistent_root();
  WriteFlagsRequest request = flags_request();
  request.binds.clear();
  fs::remove(agent("/work"));
  fs::create_directory_symlink(folder_ / "victim", agent("/work"));
  EXPECT_EQ(write_flags(request).error().code, Code::unsafe_path);
  fs::remove(agent("/work"));
  EXPECT_EQ(write_flags(request).error().code, Code::unsafe_path) << "hive-priv doesn't make it";
  fs::create_directory(agent("/work"));
  expect_untouched();
  expect_switched(write_flags());
}

TEST_F(SwitchTest, P15_AnImmutableRootIsReportedAndNothingChanges) {
  make_persistent_root();
  UniqueFd fd(::open(root().c_str(), O_RDONLY | O_DIRECTORY));
  int flags = 0;
  if (::ioctl(fd.get(), FS_IOC_GETFLAGS, &flags) != 0) GTEST_SKIP() << "SKIPPED LOUDLY: no flags on this file system";
  int immutable = flags | FS_IMMUTABLE_FL;
  if (::ioctl(fd.get(), FS_IOC_SETFLAGS, &immutable) != 0) GTEST_SKIP() << "SKIPPED LOUDLY: flags can't be set here";
  auto outcome = write_flags();
  EXPECT_EQ(::ioctl(fd.get(), FS_IOC_SETFLAGS, &flags), 0);
  ASSERT_FALSE(outcome.has_value());
  EXPECT_THAT(outcome.error().message, HasSubstr("immutable"));
  expect_untouched();
  expect_switched(write_flags());
}

TEST_F(SwitchTest, P17_TheOwnerOfASalvageIsNotWhatAGuestWrites) {
  make_persistent_root();
  write(root("/etc/passwd"), "iris:x:0:0::/home/iris:/bin/sh\n");
  expect_switched(write_flags());
  EXPECT_EQ(status_of(salvage()).st_uid, 1001U);
}

TEST_F(SwitchTest, P17_AHomeOfRootOrOfASystemUserGivesTheSalvageToNobodyElse) {
  make_persistent_root();
  own(root("/home/iris"), 33);
  expect_switched(write_flags());
  EXPECT_EQ(status_of(salvage()).st_uid, 0U);
}

TEST_F(SwitchTest, P17_S33_TheOwnersSettingsComeFirst) {
  make_persistent_root();
  settings_.agents["iris"].uid = 4242;
  expect_switched(write_flags());
  EXPECT_EQ(status_of(salvage()).st_uid, 4242U);
}

TEST_F(SwitchTest, Trap_TheJournalLinkOfTheHostFollowsTheOldRoot) {
  make_persistent_root();
  std::string journal = "/var/lib/nixos-containers/h-iris/var/log/journal/" + std::string(old_id);
  fs::create_symlink(journal, host("/var/log/journal/" + std::string(old_id)));
  expect_switched(write_flags());
  EXPECT_EQ(
      fs::read_symlink(host("/var/log/journal/" + std::string(old_id))),
      "/var/lib/nixos-containers/" + old_roots()[0].filename().string() + "/var/log/journal/" + std::string(old_id));
}

TEST_F(SwitchTest, AJournalLinkThatIsNotTheContainersStays) {
  make_persistent_root();
  fs::create_symlink("/var/lib/nixos-containers/h-eve/var/log/journal/x",
                     host("/var/log/journal/" + std::string(old_id)));
  expect_switched(write_flags());
  EXPECT_EQ(fs::read_symlink(host("/var/log/journal/" + std::string(old_id))),
            "/var/lib/nixos-containers/h-eve/var/log/journal/x");
}

TEST_F(SwitchTest, S22_BothSidesOf15Percent) {
  constexpr std::uint64_t total = 1'000'000;
  EXPECT_TRUE(leaves_enough({.total_bytes = total, .available_bytes = 250'000}, 100'000, 15));
  EXPECT_FALSE(leaves_enough({.total_bytes = total, .available_bytes = 250'000}, 100'001, 15));
  EXPECT_TRUE(leaves_enough({.total_bytes = total, .available_bytes = 150'000}, 0, 15)) << "exactly 15 % is enough";
  EXPECT_FALSE(leaves_enough({.total_bytes = total, .available_bytes = 100'000}, 100'001, 15));
  EXPECT_FALSE(leaves_enough({.total_bytes = 101, .available_bytes = 15}, 0, 15)) << "15.15 are needed";
  EXPECT_TRUE(leaves_enough({.total_bytes = 101, .available_bytes = 16}, 0, 15));
}

TEST_F(SwitchTest, S22_WithTooLittleRoomTheSalvageIsSkippedAndTheOldRootKept) {
  make_persistent_root();
  write(root("/home/iris/large"), std::string(1 << 20, 'x'));
  hooks_.may_clone = false;
  hooks_.disk_space = [](int) -> Result<DiskSpace> {
    return DiskSpace{.total_bytes = 100 << 20, .available_bytes = 15 << 20};
  };
  auto outcome = write_flags();
  ASSERT_TRUE(outcome.has_value()) << text_of(outcome);
  EXPECT_THAT(outcome->result, HasSubstr(R"("salvage":"skipped_low_disk")"));
  EXPECT_TRUE(salvages().empty());
  EXPECT_EQ(names_in(agent()), (std::vector<std::string>{"claude", "harness", "state", "work"}));
  ASSERT_EQ(old_roots().size(), 1U);
  EXPECT_EQ(read(old_roots()[0] / "home/iris/pre-switch.txt"), "pre-switch\n");
  EXPECT_EQ(count_of(conf(), "--ephemeral"), 1U);
}

TEST_F(SwitchTest, Q4_ASalvageThatFailsForAnotherReasonStopsTheSwitch) {
  make_persistent_root();
  settings_.max_salvage_entries = 3;
  EXPECT_EQ(write_flags().error().code, Code::limit_reached);
  expect_untouched();
  settings_.max_salvage_entries = 1000;
  stopping_ = true;
  for (int i = 0; i < 100; ++i)
    write(root("/home/iris/f" + std::to_string(i)), "x");
  EXPECT_EQ(write_flags().error().code, Code::busy);
  expect_untouched();
  stopping_ = false;
  expect_switched(write_flags());
}

TEST_F(SwitchTest, P16_AMountUnderTheRootStopsTheSwitch) {
  make_persistent_root();
  fs::create_directory(root("/srv"));
  if (::mount("none", root("/srv").c_str(), "tmpfs", MS_NOSUID | MS_NODEV, "size=64k") != 0) {
    GTEST_SKIP() << "SKIPPED LOUDLY: no mounts can be made here";
  }
  auto outcome = write_flags();
  ::umount2(root("/srv").c_str(), MNT_DETACH);
  ASSERT_FALSE(outcome.has_value());
  EXPECT_EQ(outcome.error().code, Code::unsafe_path);
  expect_untouched();
}

TEST_F(SwitchTest, C13_ARunningContainerIsNotSwitchedButMayBeConfigured) {
  make_persistent_root();
  for (std::string_view state : {"active", "activating", "deactivating", "reloading"}) {
    units_.set("h-iris", state);
    EXPECT_EQ(write_flags().error().code, Code::busy) << state;
    expect_untouched();
  }
  units_.set("h-iris", "failed");
  expect_switched(write_flags());
  units_.set("h-iris", "active");
  WriteFlagsRequest fewer = flags_request();
  fewer.binds.pop_back();
  auto outcome = write_flags(fewer);
  ASSERT_TRUE(outcome.has_value()) << text_of(outcome);
  EXPECT_THAT(outcome->result, HasSubstr(R"("conf_changed":true)"));
}

TEST_F(SwitchTest, C13_ARootThatNspawnHoldsWithoutAUnitIsBusy) {
  make_persistent_root();
  UniqueFd lock(::open(host("/var/lib/nixos-containers/.#h-iris.lck").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  struct flock exclusive{};
  exclusive.l_type = F_WRLCK;
  exclusive.l_whence = SEEK_SET;
  ASSERT_EQ(::fcntl(lock.get(), F_OFD_SETLK, &exclusive), 0);
  EXPECT_EQ(write_flags().error().code, Code::busy);
  expect_untouched();
  lock.reset();
  expect_switched(write_flags());
}

TEST_F(SwitchTest, C14_KeptRootsAreBounded) {
  settings_.max_kept_roots = 2;
  for (int i = 0; i < 3; ++i) {
    make_persistent_root();
    write(host("/etc/nixos-containers/h-iris.conf"), "AUTO_START=0\n");
    auto outcome = write_flags();
    EXPECT_EQ(outcome.has_value(), i < 2) << text_of(outcome);
    if (!outcome) {
      EXPECT_EQ(outcome.error().code, Code::limit_reached);
    }
  }
  EXPECT_EQ(old_roots().size(), 2U);
  EXPECT_EQ(read(root("/home/iris/pre-switch.txt")), "pre-switch\n");
}

TEST_F(SwitchTest, C12_TwoCallsAtOnceSwitchOnce) {
  make_persistent_root();
  std::array<Outcome<Done>, 2> outcomes = {refuse(Code::internal, ""), refuse(Code::internal, "")};
  std::thread other([&] { outcomes[1] = write_flags(); });
  outcomes[0] = write_flags();
  other.join();
  int switched = 0;
  for (const auto& outcome : outcomes) {
    ASSERT_TRUE(outcome.has_value()) << text_of(outcome);
    if (outcome->result.find(R"("switched":true)") != std::string::npos) ++switched;
  }
  EXPECT_EQ(switched, 1);
  expect_state_after_switch();
}

TEST_F(SwitchTest, ADistributionsOwnFilesAreNotSalvagedButWhatWasPutThereByHandIs) {
  make_persistent_root();
  write(host("/etc/nixos-containers/h-iris.conf"), "AUTO_START=0\n");
  for (std::string_view path :
       {"/usr/bin/ls", "/usr/lib/x.so", "/var/lib/dpkg/status", "/boot/vmlinuz", "/usr/local/bin/tool", "/opt/app/x"})
    write(root(path), "x");
  expect_switched(write_flags());
  for (std::string_view path : {"usr/bin", "usr/lib", "var/lib/dpkg", "boot"})
    EXPECT_FALSE(fs::exists(salvage() / path)) << path;
  EXPECT_TRUE(fs::exists(salvage() / "usr/local/bin/tool"));
  EXPECT_TRUE(fs::exists(salvage() / "opt/app/x"));
}

}  // namespace
}  // namespace hive::priv
