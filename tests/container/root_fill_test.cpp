#include "container/root_fill.h"

#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"

namespace hive::container {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

constexpr const char* id = "0123456789abcdef0123456789abcdef";

class RootFill : public ::testing::Test {
 protected:
  void SetUp() override {
    char folder[] = "/tmp/hive-fill-test.XXXXXX";
    ASSERT_NE(::mkdtemp(folder), nullptr);
    layout_.prefix = folder;
    fs::create_directories(layout_.roots());
    fs::create_directories(layout_.template_root("h-iris") + "/usr/lib/systemd");
    fs::create_directories(layout_.template_root("h-iris") + "/etc");
    write(layout_.template_root("h-iris") + "/etc/machine-id", "");
    write(layout_.template_root("h-iris") + "/usr/lib/os-release", "ID=debian\n");
  }
  void TearDown() override { fs::remove_all(layout_.prefix); }

  static void write(const std::string& path, const std::string& text) {
    fs::create_directories(fs::path(path).parent_path());
    std::ofstream(path) << text;
  }
  std::string root() { return layout_.root("h-iris"); }
  Result<void> fill() { return fill_root("h-iris", layout_); }
  std::vector<std::string> names() {
    std::vector<std::string> all;
    for (const auto& entry : fs::directory_iterator(layout_.roots()))
      all.push_back(entry.path().filename().string());
    return all;
  }

  Layout layout_;
};

TEST_F(RootFill, CopiesTheTemplateWhereThereIsNoRoot) {
  ASSERT_TRUE(fill());
  EXPECT_TRUE(fs::exists(root() + "/usr/lib/os-release"));
  EXPECT_THAT(names(), ::testing::ElementsAre("h-iris"));
  EXPECT_TRUE(fs::exists(layout_.template_root("h-iris") + "/usr/lib/os-release"));
}

TEST_F(RootFill, FillsTheSkeletonOfASwitchAndKeepsItsMachineId) {
  write(root() + "/etc/machine-id", std::string(id) + "\n");
  fs::create_directories(root() + "/root");
  fs::create_directories(root() + "/var/lib/private");
  ASSERT_TRUE(fill());
  EXPECT_EQ(read_file(root() + "/etc/machine-id", 100), std::string(id) + "\n");
  EXPECT_TRUE(fs::exists(root() + "/usr/lib/os-release"));
  EXPECT_THAT(names(), ::testing::ElementsAre("h-iris"));
}

TEST_F(RootFill, LeavesARootWithASystemAlone) {
  write(root() + "/usr/lib/mine", "x");
  write(root() + "/home/iris/work.txt", "x");
  ASSERT_TRUE(fill());
  EXPECT_TRUE(fs::exists(root() + "/home/iris/work.txt"));
  EXPECT_FALSE(fs::exists(root() + "/usr/lib/os-release"));
}

TEST_F(RootFill, NeverReplacesFilesThatAreNotOfTheSkeleton) {
  write(root() + "/home/iris/work.txt", "x");
  auto filled = fill();
  ASSERT_FALSE(filled);
  EXPECT_THAT(filled.error().message, HasSubstr("holds files but no system"));
  EXPECT_TRUE(fs::exists(root() + "/home/iris/work.txt"));
}

TEST_F(RootFill, TakesNoLinkForTheRootOrForItsSystem) {
  const std::string victim = layout_.prefix + "/victim";
  fs::create_directories(victim);
  fs::create_directory_symlink(victim, root());
  EXPECT_FALSE(fill());
  fs::remove(root());
  fs::create_directories(root());
  fs::create_directory_symlink(victim, root() + "/usr");
  EXPECT_FALSE(fill());
  EXPECT_TRUE(fs::is_empty(victim));
}

TEST_F(RootFill, ReadsNoMachineIdThroughALink) {
  write(layout_.prefix + "/host-id", std::string(id) + "\n");
  fs::create_directories(root() + "/etc");
  fs::create_symlink(layout_.prefix + "/host-id", root() + "/etc/machine-id");
  ASSERT_TRUE(fill());
  EXPECT_EQ(read_file(root() + "/etc/machine-id", 100), "");
}

TEST_F(RootFill, StartsAfreshAfterACopyThatWasCutOff) {
  write(layout_.roots() + "/.hive-fill.h-iris/usr/lib/half", "x");
  ASSERT_TRUE(fill());
  EXPECT_FALSE(fs::exists(root() + "/usr/lib/half"));
  EXPECT_THAT(names(), ::testing::ElementsAre("h-iris"));
}

TEST_F(RootFill, KeepsSetuidBitsAndHardLinksOfTheTemplate) {
  const std::string program = layout_.template_root("h-iris") + "/usr/lib/su";
  write(program, "x");
  ASSERT_EQ(::chmod(program.c_str(), 04755), 0);
  fs::create_hard_link(program, layout_.template_root("h-iris") + "/usr/lib/su2");
  ASSERT_TRUE(fill());
  struct stat status{};
  ASSERT_EQ(::stat((root() + "/usr/lib/su").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 04755u);
  EXPECT_EQ(status.st_nlink, 2u);
}

TEST_F(RootFill, SaysWhereTheTemplateShouldBe) {
  fs::remove_all(layout_.template_root("h-iris"));
  auto filled = fill();
  ASSERT_FALSE(filled);
  EXPECT_THAT(filled.error().message, HasSubstr(layout_.template_root("h-iris")));
}

}  // namespace
}  // namespace hive::container
