// The 15 % rule and clones on real file systems: a small tmpfs, whose room is exact and which can't clone, and an XFS
// that can.
#include <array>
#include <filesystem>
#include <fstream>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <sys/ioctl.h>

#include "host_tree.h"

namespace hive::priv {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

constexpr std::uint64_t mebibyte = std::uint64_t{1} << 20;

void write_mebibytes(const fs::path& path, std::uint64_t count) {
  std::ofstream file(path, std::ios::binary);
  std::string block(mebibyte, 'x');
  for (std::uint64_t i = 0; i < count; ++i)
    file << block;
}

class SwitchOnTmpfs : public HostTree {
 protected:
  bool mount_host() override {
    return mount_at_host("mount -t tmpfs -o size=100m,mode=0755 hive-priv-test " + layout_.anchor);
  }
};

TEST_F(SwitchOnTmpfs, S22_ACopyThatLeaves15PercentIsMade) {
  make_persistent_root();
  write_mebibytes(root("/home/iris/large"), 41);
  auto outcome = write_flags();
  ASSERT_TRUE(outcome.has_value()) << text_of(outcome);
  EXPECT_THAT(outcome->result, HasSubstr(R"("salvage":"done")"));
  EXPECT_THAT(outcome->result, HasSubstr(R"("cloned":false)"));
  EXPECT_EQ(fs::file_size(salvage() / "home/iris/large"), 41 * mebibyte);
}

TEST_F(SwitchOnTmpfs, S22_ACopyThatLeavesLessIsSkippedAndNothingIsLost) {
  make_persistent_root();
  write_mebibytes(root("/home/iris/large"), 44);
  auto outcome = write_flags();
  ASSERT_TRUE(outcome.has_value()) << text_of(outcome);
  EXPECT_THAT(outcome->result, HasSubstr(R"("salvage":"skipped_low_disk")"));
  EXPECT_TRUE(salvages().empty());
  EXPECT_EQ(fs::file_size(old_roots().at(0) / "home/iris/large"), 44 * mebibyte);
  EXPECT_EQ(read(old_roots().at(0) / "home/iris/pre-switch.txt"), "pre-switch\n");
  EXPECT_GE(measure_disk(UniqueFd(::open(layout_.anchor.c_str(), O_RDONLY)).get())->available_bytes, 50 * mebibyte)
      << "the partial copy is gone";
}

TEST_F(SwitchOnTmpfs, AFullDiskIsNoDiskFullOfHalfACopy) {
  make_persistent_root();
  write_mebibytes(root("/home/iris/large"), 44);
  // Somebody else fills the disk after it was measured.
  hooks_.disk_space = [this](int) -> Result<DiskSpace> {
    write_mebibytes(host("/filler"), 30);
    return DiskSpace{.total_bytes = 1000 * mebibyte, .available_bytes = 900 * mebibyte};
  };
  auto outcome = write_flags();
  ASSERT_TRUE(outcome.has_value()) << text_of(outcome);
  EXPECT_THAT(outcome->result, HasSubstr(R"("salvage":"skipped_low_disk")"));
  EXPECT_EQ(names_in(agent()), (std::vector<std::string>{"claude", "harness", "state", "work"}));
  EXPECT_EQ(fs::file_size(old_roots().at(0) / "home/iris/large"), 44 * mebibyte);
}

class SwitchOnXfs : public HostTree {
 protected:
  bool mount_host() override {
    std::string image = (folder_ / "xfs.img").string();
    return mount_at_host("truncate -s 400M " + image + " && mkfs.xfs -q -m reflink=1 " + image + " && mount -o loop " +
                         image + " " + layout_.anchor);
  }

  // Whether the first extent of a file has another owner too.
  static bool shares_blocks(const fs::path& path) {
    UniqueFd fd(::open(path.c_str(), O_RDONLY));
    std::array<std::uint64_t, (sizeof(fiemap) + sizeof(fiemap_extent)) / 8 + 1> memory{};
    auto* map = reinterpret_cast<fiemap*>(memory.data());
    map->fm_length = ~std::uint64_t{0};
    map->fm_extent_count = 1;
    return ::ioctl(fd.get(), FS_IOC_FIEMAP, map) == 0 && map->fm_mapped_extents == 1 &&
           (map->fm_extents[0].fe_flags & FIEMAP_EXTENT_SHARED) != 0;
  }
};

TEST_F(SwitchOnXfs, S22_WhereFilesCanBeClonedTheRuleDoesNotHoldAndACloneCostsNothing) {
  make_persistent_root();
  // Two of these don't fit.
  write_mebibytes(root("/home/iris/large"), 220);
  auto outcome = write_flags();
  ASSERT_TRUE(outcome.has_value()) << text_of(outcome);
  EXPECT_THAT(outcome->result, HasSubstr(R"("salvage":"done")"));
  EXPECT_THAT(outcome->result, HasSubstr(R"("cloned":true)"));
  EXPECT_EQ(fs::file_size(salvage() / "home/iris/large"), 220 * mebibyte);
  EXPECT_TRUE(shares_blocks(salvage() / "home/iris/large"));
  EXPECT_EQ(read(salvage() / "home/iris/pre-switch.txt"), "pre-switch\n");
}

}  // namespace
}  // namespace hive::priv
