#include "priv/check_rootfs.h"

#include <filesystem>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <unistd.h>

#include "host_tree.h"

namespace hive::priv {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class CheckRootfsTest : public HostTree {
 protected:
  void SetUp() override {
    HostTree::SetUp();
    if (IsSkipped()) return;
    for (std::string_view path : {"/usr/bin", "/etc", "/var/lib/private", "/var/log/journal", "/root"})
      fs::create_directories(root(path));
    write(root("/etc/machine-id"), "0123456789abcdef0123456789abcdef\n");
  }

  std::vector<std::string> refusals(const std::string& container = "h-iris") {
    auto findings = check_rootfs(layout_, settings_, container);
    EXPECT_TRUE(findings.has_value()) << findings.error().message;
    return findings ? findings->refusals : std::vector<std::string>{"error"};
  }

  void plant(std::string_view path, const fs::path& target) const {
    fs::remove_all(root(path));
    fs::create_symlink(target, root(path));
  }
};

TEST_F(CheckRootfsTest, S25_AnHonestRootMayStart) {
  EXPECT_THAT(refusals(), IsEmpty());
}

TEST_F(CheckRootfsTest, Q8_AbsentIsFine) {
  for (std::string_view path : {"/usr", "/etc", "/var", "/root"})
    fs::remove_all(root(path));
  EXPECT_THAT(refusals(), IsEmpty());
  fs::remove_all(root());
  EXPECT_THAT(refusals(), IsEmpty());
}

TEST_F(CheckRootfsTest, S35_S36_APlantedRootLinkIsNamedAndLeftAlone) {
  plant("/root", folder_ / "victim");
  EXPECT_THAT(refusals(), ElementsAre(root("/root").string() + " is a symlink"));
  EXPECT_TRUE(fs::is_symlink(root("/root")));
  EXPECT_EQ(status_of(folder_ / "victim").st_mode & 07777, 0755U);
}

TEST_F(CheckRootfsTest, S37_WithTheLinkGoneTheRootMayStart) {
  plant("/root", folder_ / "victim");
  ASSERT_THAT(refusals(), ::testing::SizeIs(1));
  fs::remove(root("/root"));
  fs::create_directory(root("/root"));
  EXPECT_THAT(refusals(), IsEmpty());
}

TEST_F(CheckRootfsTest, P01_P02_P03_EveryPathThatTheStartTouches) {
  for (std::string_view path : {"/root", "/etc", "/var", "/var/lib", "/var/lib/private", "/usr", "/usr/bin",
                                "/etc/machine-id", "/var/log", "/var/log/journal"}) {
    fs::rename(root(path), folder_ / "aside");
    for (const fs::path& target : {folder_ / "victim", folder_ / "absent", fs::path(".."), fs::path(path).filename()}) {
      fs::create_symlink(target, root(path));
      EXPECT_THAT(refusals(), ElementsAre(root(path).string() + " is a symlink")) << target;
      fs::remove(root(path));
    }
    fs::rename(folder_ / "aside", root(path));
  }
  fs::rename(root(), folder_ / "aside");
  fs::create_symlink(folder_ / "aside", root());
  EXPECT_THAT(refusals(), ElementsAre(root().string() + " is a symlink"));
  fs::remove(root());
}

TEST_F(CheckRootfsTest, P04_LinksThatHonestGuestsHaveAreAllowed) {
  plant("/etc/os-release", "/etc/static/os-release");
  plant("/etc/resolv.conf", "/run/systemd/resolve/stub-resolv.conf");
  plant("/bin", "usr/bin");
  plant("/usr/bin/env", "/nix/store/abc/bin/env");
  plant("/var/run", "/run");
  EXPECT_THAT(refusals(), IsEmpty());
}

TEST_F(CheckRootfsTest, P05_ANonDirectoryIsNamed) {
  fs::remove_all(root("/root"));
  write(root("/root"), "x");
  EXPECT_THAT(refusals(), ElementsAre(root("/root").string() + " is not a directory"));
  fs::remove_all(root("/root"));
  fs::remove(root("/etc/machine-id"));
  ASSERT_EQ(::mkfifo(root("/etc/machine-id").c_str(), 0644), 0);
  EXPECT_THAT(refusals(), ElementsAre(root("/etc/machine-id").string() + " is not a regular file"));
}

TEST_F(CheckRootfsTest, Q8_OwnersAndModesAreWarningsAndAUserNamespaceIsNone) {
  own(root("/root"), 1001);
  fs::permissions(root("/etc"), fs::perms(0777));
  auto findings = check_rootfs(layout_, settings_, "h-iris");
  ASSERT_TRUE(findings.has_value());
  EXPECT_THAT(findings->refusals, IsEmpty());
  EXPECT_THAT(findings->warnings, ElementsAre(root("/etc").string() + " may be written by group or others (mode 0777)",
                                              root("/root").string() + " is owned by uid 1001"));
  for (std::string_view path :
       {"", "/root", "/etc", "/etc/machine-id", "/var", "/var/lib", "/var/lib/private", "/usr", "/usr/bin"})
    own(root(path), 655360, 655360);
  fs::permissions(root("/etc"), fs::perms(0755));
  EXPECT_THAT(check_rootfs(layout_, settings_, "h-iris")->warnings, IsEmpty());
}

TEST_F(CheckRootfsTest, S34_TheCheckIsForEveryContainerOfTheTemplate) {
  fs::create_directories(host("/var/lib/nixos-containers/forge/etc"));
  fs::create_directory_symlink(folder_ / "victim", host("/var/lib/nixos-containers/forge/var"));
  EXPECT_THAT(refusals("forge"), ElementsAre(host("/var/lib/nixos-containers/forge/var").string() + " is a symlink"));
  EXPECT_THAT(refusals("unknown"), IsEmpty());
  for (std::string bad : {"", "..", "../etc", "a/b", "-x"})
    EXPECT_EQ(check_rootfs(layout_, settings_, bad).error().code, ErrorCode::invalid_argument) << bad;
}

TEST_F(CheckRootfsTest, C04_BindSourcesAreLookedAtAgain) {
  fs::remove_all(root());
  ASSERT_TRUE(write_flags().has_value());
  EXPECT_THAT(refusals(), IsEmpty());
  fs::remove(agent("/state"));
  EXPECT_THAT(refusals(), ElementsAre(HasSubstr("bind source /var/lib/hyperhive/agents/iris/state")));
  fs::create_directory_symlink(folder_ / "victim", agent("/state"));
  EXPECT_THAT(refusals(), ElementsAre("bind source /var/lib/hyperhive/agents/iris/state is a symlink"));
  fs::remove(agent("/state"));
  fs::create_directory(agent("/state"));
  fs::permissions(agent(), fs::perms(0777));
  EXPECT_THAT(refusals(), ::testing::SizeIs(4));
  fs::permissions(agent(), fs::perms(0755));
  EXPECT_THAT(refusals(), IsEmpty());
}

TEST_F(CheckRootfsTest, C04_ABindThatHivePrivWouldNotWriteIsRefusedUnlessTheOwnerGaveIt) {
  write(host("/etc/nixos-containers/h-iris.conf"),
        "EXTRA_NSPAWN_FLAGS=\"--ephemeral --bind-ro=/usr/share/zoneinfo:/x\"\n");
  EXPECT_THAT(refusals(),
              ElementsAre(HasSubstr("bind source \"/usr/share/zoneinfo\" is not a folder that h-iris may have")));
  write(host("/etc/nixos-containers/h-iris.extra"), "--bind-ro=/usr/share/zoneinfo:/x\n");
  EXPECT_THAT(refusals(), IsEmpty());
  write(host("/etc/nixos-containers/h-iris.conf"), "EXTRA_NSPAWN_FLAGS=\"--bind=/srv:/x\"\n");
  EXPECT_THAT(refusals(), IsEmpty()) << "written by others: their rules";
}

TEST_F(CheckRootfsTest, AStartDuringASwitchIsRefused) {
  fs::create_directories(host("/var/lib/hive-priv/locks"));
  UniqueFd lock(::open(host("/var/lib/hive-priv/locks/h-iris.switch").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  EXPECT_THAT(refusals(), IsEmpty());
  ASSERT_EQ(::flock(lock.get(), LOCK_EX), 0);
  EXPECT_THAT(refusals(), ElementsAre(HasSubstr("is being switched")));
}

TEST_F(CheckRootfsTest, ItReadsOnly) {
  plant("/root", folder_ / "victim");
  std::string before = read(host("/etc/nixos-containers/h-iris.conf"));
  auto changed = status_of(root()).st_ctim;
  ASSERT_THAT(refusals(), ::testing::SizeIs(1));
  EXPECT_EQ(status_of(root()).st_ctim.tv_nsec, changed.tv_nsec);
  EXPECT_EQ(read(host("/etc/nixos-containers/h-iris.conf")), before);
  EXPECT_THAT(names_in(host("/var/lib/hive-priv")), IsEmpty());
}

}  // namespace
}  // namespace hive::priv
