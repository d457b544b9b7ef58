#include "priv/tree_copy.h"

#include <array>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "host_tree.h"
#include "priv/beneath.h"

namespace hive::priv {
namespace {

namespace fs = std::filesystem;

// A hostile tree under `from`, its copy under `to`.
class TreeCopyTest : public HostTree {
 protected:
  void SetUp() override {
    HostTree::SetUp();
    for (std::string_view name : {"from", "to", "links"})
      fs::create_directory(folder_ / name);
  }

  [[nodiscard]] fs::path from(std::string_view path = "") const { return folder_ / "from" / path; }
  [[nodiscard]] fs::path to(std::string_view path = "") const { return folder_ / "to" / path; }

  Result<CopyReport> copy(const std::vector<std::string>& excluded = {}, const CopyOptions& options = {},
                          WalkLimits limits = {}) {
    UniqueFd source(::open(from().c_str(), O_RDONLY | O_DIRECTORY));
    UniqueFd destination(::open(to().c_str(), O_RDONLY | O_DIRECTORY));
    UniqueFd links(::open((folder_ / "links").c_str(), O_RDONLY | O_DIRECTORY));
    return copy_tree(source.get(), destination.get(), links.get(), Exclusions(excluded), limits, options);
  }

  CopyReport copied(const std::vector<std::string>& excluded = {}, const CopyOptions& options = {}) {
    auto report = copy(excluded, options);
    EXPECT_TRUE(report.has_value()) << report.error().message;
    return report.value_or(CopyReport());
  }
};

TEST_F(TreeCopyTest, S16_S17_KeepsPathsContentOwnersModesAndTimes) {
  write(from("home/iris/file"), "content", 0640);
  own(from("home/iris/file"), 1001, 1002);
  own(from("home/iris"), 1001, 1002);
  fs::permissions(from("home/iris"), fs::perms(0710));
  const std::array<timespec, 2> times = {timespec{.tv_sec = 1000, .tv_nsec = 5},
                                         timespec{.tv_sec = 2000, .tv_nsec = 7}};
  ASSERT_EQ(::utimensat(AT_FDCWD, from("home/iris/file").c_str(), times.data(), 0), 0);
  ASSERT_EQ(::utimensat(AT_FDCWD, from("home/iris").c_str(), times.data(), 0), 0);
  CopyReport report = copied();
  EXPECT_EQ(report.entries, 3U);
  EXPECT_EQ(report.bytes, 7U);
  EXPECT_EQ(read(to("home/iris/file")), "content");
  for (std::string_view path : {"home/iris/file", "home/iris"}) {
    struct stat before = status_of(from(path));
    struct stat after = status_of(to(path));
    EXPECT_EQ(after.st_uid, 1001U);
    EXPECT_EQ(after.st_gid, 1002U);
    EXPECT_EQ(after.st_mode, before.st_mode);
    EXPECT_EQ(after.st_mtim.tv_sec, 2000);
    EXPECT_EQ(after.st_mtim.tv_nsec, 7);
  }
}

TEST_F(TreeCopyTest, S18_LeavesOutWhatIsExcludedByPathAndNotByName) {
  for (std::string_view path :
       {"tmp/x", "home/iris/.cache/x", "home/eve/.cache/x", "home/iris/tmp/x", "root/.cache/x", "srv/.cache/x"})
    write(from(path), "x");
  copied({"tmp", "home/*/.cache", "root/.cache"});
  for (std::string_view path : {"tmp", "home/iris/.cache", "home/eve/.cache", "root/.cache"})
    EXPECT_FALSE(fs::exists(to(path))) << path;
  EXPECT_TRUE(fs::exists(to("home/iris/tmp/x")));
  EXPECT_TRUE(fs::exists(to("srv/.cache/x")));
}

TEST_F(TreeCopyTest, P06_LinksAreNeverFollowed) {
  fs::create_symlink(folder_ / "victim", from("absolute"));
  fs::create_symlink("../../../../etc", from("outgoing"));
  EXPECT_EQ(copied().entries, 2U);
  EXPECT_EQ(fs::read_symlink(to("absolute")), folder_ / "victim");
  EXPECT_EQ(fs::read_symlink(to("outgoing")), "../../../../etc");
}

TEST_F(TreeCopyTest, P06_OddTargetsStayAsTheyAre) {
  fs::create_symlink(folder_ / "victim/secret", from("file"));
  fs::create_symlink("loop", from("loop"));
  fs::create_symlink(std::string(4000, 'x'), from("long"));
  fs::create_symlink("bad\xff\n\x1b[31m", from("bytes"));
  own(from("file"), 1001);
  copied();
  EXPECT_EQ(fs::read_symlink(to("file")), folder_ / "victim/secret");
  EXPECT_EQ(fs::read_symlink(to("loop")), "loop");
  EXPECT_EQ(fs::read_symlink(to("long")).string().size(), 4000U);
  EXPECT_EQ(fs::read_symlink(to("bytes")), "bad\xff\n\x1b[31m");
  EXPECT_EQ(status_of(to("file")).st_uid, 1001U);
}

TEST_F(TreeCopyTest, P10_HardLinksStayGroupsAndNoInodeOfTheSourceChanges) {
  write(from("a/one"), "shared", 0600);
  fs::create_hard_link(from("a/one"), from("two"));
  fs::create_hard_link(from("a/one"), from("three"));
  struct stat before = status_of(from("two"));
  EXPECT_EQ(copied().bytes, 6U);
  EXPECT_EQ(status_of(to("two")).st_ino, status_of(to("a/one")).st_ino);
  EXPECT_EQ(status_of(to("three")).st_ino, status_of(to("a/one")).st_ino);
  EXPECT_NE(status_of(to("two")).st_ino, before.st_ino);
  struct stat after = status_of(from("two"));
  EXPECT_EQ(after.st_nlink, before.st_nlink);
  EXPECT_EQ(after.st_ctim.tv_nsec, before.st_ctim.tv_nsec);
}

TEST_F(TreeCopyTest, P11_DevicesPipesAndSocketsAreCountedAndNotOpened) {
  ASSERT_EQ(::mkfifo(from("fifo").c_str(), 0666), 0);
  ASSERT_EQ(::mknod(from("disk").c_str(), S_IFBLK | 0666, makedev(7, 0)), 0);
  ASSERT_EQ(::mknod(from("tape").c_str(), S_IFCHR | 0666, makedev(9, 0)), 0);
  ASSERT_EQ(::mknod(from("socket").c_str(), S_IFSOCK | 0666, 0), 0);
  write(from("file"), "x");
  EXPECT_EQ(copied().skipped_special, 4U);
  EXPECT_EQ(names_in(to()), std::vector<std::string>{"file"});
}

TEST_F(TreeCopyTest, P12_SetuidSetgidStickyCapabilitiesAndListsStayBehind) {
  write(from("setuid"), "x", 04755);
  write(from("setgid"), "x", 02755);
  write(from("sticky"), "x", 01644);
  fs::create_directory(from("folder"));
  ASSERT_EQ(::chmod(from("folder").c_str(), 03777), 0);
  write(from("attributes"), "x");
  ASSERT_EQ(::setxattr(from("attributes").c_str(), "user.note", "kept", 4, 0), 0);
  ASSERT_EQ(::setxattr(from("attributes").c_str(), "trusted.overlay.opaque", "y", 1, 0), 0);
  // vfs_cap_data of revision 2 with CAP_NET_RAW, see capability(7)
  const std::array<unsigned char, 20> capabilities = {1, 0, 0, 2, 0, 0x20};
  ASSERT_EQ(::setxattr(from("attributes").c_str(), "security.capability", capabilities.data(), capabilities.size(), 0),
            0);
  copied();
  EXPECT_EQ(status_of(to("setuid")).st_mode & 07777, 0755U);
  EXPECT_EQ(status_of(to("setgid")).st_mode & 07777, 0755U);
  EXPECT_EQ(status_of(to("sticky")).st_mode & 07777, 0644U);
  EXPECT_EQ(status_of(to("folder")).st_mode & 07777, 01777U);
  std::array<char, 16> value{};
  EXPECT_EQ(::getxattr(to("attributes").c_str(), "user.note", value.data(), value.size()), 4);
  EXPECT_LT(::getxattr(to("attributes").c_str(), "trusted.overlay.opaque", value.data(), value.size()), 0);
  EXPECT_LT(::getxattr(to("attributes").c_str(), "security.capability", value.data(), value.size()), 0);
}

TEST_F(TreeCopyTest, P12_WithoutItsListAFilesGroupGetsNothingThatTheListAllowedToOthers) {
  write(from("file"), "x", 0600);
  // posix_acl_xattr version 2: user::rw-, user:1001:rwx, group::---, mask::rwx, other::---
  const std::array<unsigned char, 44> list = {
      2,    0,    0,    0,    1,    0, 6, 0, 0xff, 0xff, 0xff, 0xff, 2,    0, 7, 0, 0xe9, 3,    0,    0,   4, 0, 0, 0,
      0xff, 0xff, 0xff, 0xff, 0x10, 0, 7, 0, 0xff, 0xff, 0xff, 0xff, 0x20, 0, 0, 0, 0xff, 0xff, 0xff, 0xff};
  if (::setxattr(from("file").c_str(), "system.posix_acl_access", list.data(), list.size(), 0) != 0) {
    GTEST_SKIP() << "SKIPPED LOUDLY: this file system has no ACLs";
  }
  ASSERT_EQ(status_of(from("file")).st_mode & 0777, 0670U) << "the mask stands where the group stood";
  copied();
  EXPECT_EQ(status_of(to("file")).st_mode & 0777, 0600U);
  EXPECT_LT(::getxattr(to("file").c_str(), "system.posix_acl_access", nullptr, 0), 0);
}

TEST_F(TreeCopyTest, P13_BoundsOnDepthAndCount) {
  fs::path deep = from();
  for (int i = 0; i < 30; ++i)
    deep /= "d";
  fs::create_directories(deep);
  EXPECT_EQ(copy({}, {}, {.max_depth = 20}).error().code, ErrorCode::resource_exhausted);
  fs::remove_all(to("d"));
  EXPECT_EQ(copy({}, {}, {.max_entries = 10}).error().code, ErrorCode::resource_exhausted);
  fs::remove_all(to("d"));
  EXPECT_TRUE(copy().has_value());
}

TEST_F(TreeCopyTest, P13_HolesAreNotFilled) {
  std::ofstream(from("sparse"));
  constexpr off_t size = off_t{1} << 34;
  ASSERT_EQ(::truncate(from("sparse").c_str(), size), 0);
  UniqueFd file(::open(from("sparse").c_str(), O_WRONLY));
  ASSERT_EQ(::pwrite(file.get(), "tail", 4, size - 4), 4);
  ASSERT_EQ(::pwrite(file.get(), "middle", 6, size / 2), 6);
  CopyReport report = copied();
  EXPECT_LE(report.bytes, 64U << 10);
  EXPECT_EQ(status_of(to("sparse")).st_size, size);
  EXPECT_LE(status_of(to("sparse")).st_blocks * 512, 64 << 10);
  UniqueFd copy_file(::open(to("sparse").c_str(), O_RDONLY));
  std::array<char, 6> text{};
  ASSERT_EQ(::pread(copy_file.get(), text.data(), 6, size / 2), 6);
  EXPECT_EQ(std::string_view(text.data(), 6), "middle");
}

TEST_F(TreeCopyTest, P13_CancellationEndsACopy) {
  for (int i = 0; i < 200; ++i)
    write(from("f" + std::to_string(i)), "x");
  std::atomic<bool> cancelled = true;
  EXPECT_EQ(copy({}, {}, {.cancelled = &cancelled}).error().code, ErrorCode::cancelled);
}

TEST_F(TreeCopyTest, P14_AFolderSwappedForALinkDuringTheWalkLeadsNowhere) {
  write(folder_ / "secret/file", "secret", 0600);
  write(from("a/folder/file"), "harmless", 0644);
  fs::create_symlink(folder_ / "secret", from("a/link"));
  std::atomic<unsigned> swaps = 0;
  std::jthread guest([&](const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      if (::renameat2(AT_FDCWD, from("a/folder").c_str(), AT_FDCWD, from("a/link").c_str(), RENAME_EXCHANGE) == 0)
        ++swaps;
    }
  });
  for (int i = 0; i < 200 || swaps < 1000; ++i) {
    fs::remove_all(to());
    fs::create_directory(to());
    // It may fail, or take the one for the other; what is outside never gets in.
    (void)copy();
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(to())) {
      if (entry.is_symlink() || !entry.is_regular_file()) continue;
      ASSERT_EQ(read(entry.path()), "harmless") << entry.path();
    }
  }
}

TEST_F(TreeCopyTest, P16_AMountUnderTheRootIsNotEntered) {
  fs::create_directory(from("mounted"));
  if (::mount("none", from("mounted").c_str(), "tmpfs", MS_NOSUID | MS_NODEV, "size=64k") != 0) {
    GTEST_SKIP() << "SKIPPED LOUDLY: no mounts can be made here";
  }
  auto report = copy();
  ::umount2(from("mounted").c_str(), MNT_DETACH);
  ASSERT_FALSE(report.has_value());
  EXPECT_EQ(report.error().code, ErrorCode::permission_denied);
  EXPECT_NE(report.error().message.find("mount point"), std::string::npos);
}

TEST_F(TreeCopyTest, P19_NamesOfAnyBytesAreCopiedAndEscapedInErrors) {
  std::string name = "a\n\x1b[31m\xff";
  fs::create_directories(from() / name / "b");
  EXPECT_EQ(copied().entries, 2U);
  EXPECT_EQ(names_in(to()), std::vector<std::string>{name});
  // The folder is there already now, and the error that says so names it.
  auto again = copy();
  ASSERT_FALSE(again.has_value());
  EXPECT_EQ(again.error().message.find_first_of("\n\x1b\xff"), std::string::npos) << again.error().message;
}

TEST_F(TreeCopyTest, ACopyThatMayNotBeMadeIsGivenUpBeforeItsFirstByte) {
  write(from("a"), std::string(100'000, 'a'));
  std::uint64_t asked = 0;
  CopyOptions options{.may_clone = false, .admit = [&](std::uint64_t needed) -> Result<bool> {
                        asked = needed;
                        return false;
                      }};
  CopyReport report = copied({}, options);
  EXPECT_TRUE(report.out_of_space);
  EXPECT_EQ(report.bytes, 0U);
  EXPECT_EQ(asked, 102'400U) << "25 blocks of 4096 bytes";
}

TEST_F(TreeCopyTest, P13_LinksThatFillTheDiskEndACopyThatHasNoByteOfContent) {
  // A long target takes a block of its own on most file systems; where it does not, there is nothing to bound.
  for (int i = 0; i < 40; ++i)
    fs::create_symlink(std::string(200, 'x'), from(std::to_string(i)));
  struct stat status{};
  ASSERT_EQ(::lstat(from("0").c_str(), &status), 0);
  if (status.st_blocks == 0) GTEST_SKIP() << "links take no blocks on this file system";
  std::uint64_t needed = 1;
  CopyOptions options{.admit = [&](std::uint64_t bytes) -> Result<bool> {
                        needed = bytes;
                        return false;
                      },
                      .metadata_step = 1};
  CopyReport report = copied({}, options);
  EXPECT_TRUE(report.out_of_space);
  EXPECT_EQ(needed, 0U);
  EXPECT_EQ(report.entries, 1U);
}

TEST_F(TreeCopyTest, OwnersOfAUserNamespaceAreShiftedBack) {
  write(from("guest-root"), "x");
  write(from("guest-user"), "x");
  write(from("outside"), "x");
  own(from("guest-root"), 655360, 655360);
  own(from("guest-user"), 655360 + 1001, 655360 + 100);
  own(from("outside"), 5, 5);
  copied({}, {.shift = {.base = 655360}});
  EXPECT_EQ(status_of(to("guest-root")).st_uid, 0U);
  EXPECT_EQ(status_of(to("guest-user")).st_uid, 1001U);
  EXPECT_EQ(status_of(to("guest-user")).st_gid, 100U);
  EXPECT_EQ(status_of(to("outside")).st_uid, 65534U);
}

TEST_F(TreeCopyTest, RemovingATreeFollowsNothing) {
  write(from("a/b/file"), "x");
  fs::create_directory_symlink(folder_ / "victim", from("a/link"));
  UniqueFd folder(::open(folder_.c_str(), O_RDONLY | O_DIRECTORY));
  ASSERT_TRUE(remove_tree(folder.get(), "from", {}).has_value());
  EXPECT_FALSE(fs::exists(from()));
  EXPECT_TRUE(remove_tree(folder.get(), "from", {}).has_value()) << "nothing there is fine";
}

}  // namespace
}  // namespace hive::priv
