#include "priv/switch.h"

#include <array>
#include <filesystem>
#include <thread>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <unistd.h>

#include "host_tree.h"
#include "priv/conf_file.h"
#include "priv/container_conf.h"
#include "priv/machine_id.h"
#include "priv/salvage.h"

namespace hive::priv {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr std::string_view old_id = "0123456789abcdef0123456789abcdef";

size_t count_of(std::string_view text, std::string_view part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string_view::npos; at = text.find(part, at + part.size()))
    ++count;
  return count;
}

class SwitchTest : public HostTree {
 protected:
  void expect_switched(const Outcome<Done>& outcome) const {
    ASSERT_TRUE(outcome.has_value()) << outcome.error().message << " " << outcome.error().detail;
    EXPECT_THAT(outcome->result, HasSubstr(R"("switched":true)"));
    expect_state_after_switch();
  }

  // S13 to S20, whatever way led here.
  void expect_state_after_switch() const {
    EXPECT_EQ(count_of(conf(), "--ephemeral"), 1U);
    ASSERT_EQ(salvages().size(), 1U);
    EXPECT_TRUE(is_stamped(salvages()[0], "salvaged-rootfs-")) << salvages()[0];
    EXPECT_EQ(read(salvage() / "home/iris/pre-switch.txt"), "pre-switch\n");
    EXPECT_FALSE(fs::exists(salvage() / "tmp"));
    ASSERT_EQ(old_roots().size(), 1U);
    EXPECT_EQ(read(old_roots()[0] / "home/iris/pre-switch.txt"), "pre-switch\n");
    EXPECT_FALSE(fs::exists(root("/home/iris/pre-switch.txt")));
    EXPECT_TRUE(names_in(host("/var/lib/hive-priv/switch")).empty());
    EXPECT_EQ(names_in(agent()), (std::vector<std::string>{"claude", "harness", "state", "work"}));
  }

  // Nothing moved and nothing written.
  void expect_untouched() const {
    EXPECT_THAT(conf(), Not(HasSubstr("--ephemeral")));
    EXPECT_TRUE(salvages().empty());
    EXPECT_TRUE(old_roots().empty());
    EXPECT_EQ(read(root("/home/iris/pre-switch.txt")), "pre-switch\n");
    EXPECT_EQ(names_in(agent()), (std::vector<std::string>{"claude", "harness", "state", "work"}));
  }

  [[nodiscard]] std::optional<std::string> conf_value(std::string_view key) const {
    auto parsed = ConfFile::parse(conf());
    EXPECT_TRUE(parsed.has_value());
    auto value = parsed ? parsed->value(key) : std::nullopt;
    return value ? std::optional(std::string(*value)) : std::nullopt;
  }
};

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

TEST_F(SwitchTest, S05_S07_TheFlagsAreTheRequestsBindsInOrder) {
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

TEST_F(SwitchTest, AConfigurationThatARebuildPutsBackIsWrittenAnewWithoutASecondSwitch) {
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

TEST_F(SwitchTest, AConfigurationThatIsALinkIntoTheStoreIsReplacedAndNotFollowed) {
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

TEST_F(SwitchTest, P01_P02_LinksInATemplateAreRefusedAndStay) {
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

TEST_F(SwitchTest, S29_P18_TheMachineIdIsKeptIfItIsAValidOneOfItsOwn) {
  make_persistent_root();
  expect_switched(write_flags());
  EXPECT_EQ(read(root("/etc/machine-id")), std::string(old_id) + "\n");
  EXPECT_THAT(conf(), HasSubstr("--uuid=" + std::string(old_id)));
  ASSERT_TRUE(write_flags().has_value());
  EXPECT_EQ(read(root("/etc/machine-id")), std::string(old_id) + "\n");
}

TEST_F(SwitchTest, P18_AForgedMachineIdIsReplaced) {
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

TEST_F(SwitchTest, Trap_AnIdThatATemplateBringsIsReplacedByTheContainersOwn) {
  ASSERT_TRUE(write_flags().has_value());
  std::string id = read(root("/etc/machine-id"));
  write(root("/etc/machine-id"), "");
  ASSERT_TRUE(write_flags().has_value());
  EXPECT_EQ(read(root("/etc/machine-id")), id);
}

TEST_F(SwitchTest, Trap_ADanglingMachineIdLinkOfAGuestNeverReachesTheHostsOwnFile) {
  fs::create_directories(root("/etc"));
  fs::create_directories(root("/var/lib/dbus"));
  fs::create_symlink("/etc/machine-id", root("/var/lib/dbus/machine-id"));
  fs::create_symlink(host("/etc/machine-id"), root("/etc/machine-id"));
  EXPECT_FALSE(write_flags().has_value() && fs::is_symlink(root("/etc/machine-id")));
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

TEST_F(SwitchTest, Q12_ABindWhoseSourceIsMissingIsRefused) {
  make_persistent_root();
  fs::remove(agent("/claude"));
  auto outcome = write_flags();
  ASSERT_FALSE(outcome.has_value());
  EXPECT_EQ(outcome.error().code, Code::unsafe_path);
  EXPECT_THAT(outcome.error().message, HasSubstr("binds[3].host_path"));
  EXPECT_FALSE(fs::exists(agent("/claude")));
  EXPECT_TRUE(old_roots().empty());
}

TEST_F(SwitchTest, C03_AContainerWithoutAConfigurationDoesNotExist) {
  WriteFlagsRequest request = flags_request();
  request.container = "h-eve";
  request.binds.clear();
  EXPECT_EQ(write_flags(request).error().code, Code::no_such_container);
  EXPECT_FALSE(fs::exists(host("/var/lib/hive-priv/locks/h-eve"))) << "a name that nobody has leaves no trace";
}

TEST_F(SwitchTest, AConfigurationThatOthersMayWriteIsNotRead) {
  fs::permissions(host("/etc/nixos-containers/h-iris.conf"), fs::perms(0666));
  EXPECT_EQ(write_flags().error().code, Code::unsafe_path);
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

TEST_F(SwitchTest, FlagsOfTheHostsOwnerComeFromAFileBesideTheConfiguration) {
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

TEST_F(SwitchTest, AddressesAreGivenOnceAndNeverTwice) {
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

TEST_F(SwitchTest, Q10_KeysOfOtherNetworksAreCleared) {
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
