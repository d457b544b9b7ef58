#include "cli/new_files.h"

#include <gtest/gtest.h>

#include "cli/program_run.h"

namespace hive::cli {
namespace {

using test::TemporaryFolder;

std::string text_of(const std::string& path) {
  return read_file(path, 4096).value_or("(absent)");
}

unsigned mode_of(const std::string& path) {
  struct stat status{};
  return ::stat(path.c_str(), &status) == 0 ? status.st_mode & 07777 : 0;
}

std::size_t count_files(const TemporaryFolder& folder) {
  std::filesystem::directory_iterator files(folder.path());
  return static_cast<std::size_t>(std::distance(begin(files), end(files)));
}

TEST(NewFilesTest, ComeIntoBeingTogetherWithTheirModes) {
  TemporaryFolder folder;
  NewFiles files;
  ASSERT_TRUE(files.reserve(folder.path() + "/key", 0600));
  ASSERT_TRUE(files.reserve(folder.path() + "/key.pub", 0644));
  ASSERT_TRUE(files.write(folder.path() + "/key", "secret"));
  ASSERT_TRUE(files.write(folder.path() + "/key.pub", "public"));
  EXPECT_EQ(text_of(folder.path() + "/key"), "(absent)");
  ASSERT_TRUE(files.publish());
  EXPECT_EQ(text_of(folder.path() + "/key"), "secret");
  EXPECT_EQ(mode_of(folder.path() + "/key"), 0600U);
  EXPECT_EQ(mode_of(folder.path() + "/key.pub"), 0644U);
  EXPECT_EQ(count_files(folder), 2U);
}

TEST(NewFilesTest, LeaveNothingWhenTheyAreNotPublished) {
  TemporaryFolder folder;
  {
    NewFiles files;
    ASSERT_TRUE(files.reserve(folder.path() + "/key", 0600));
    ASSERT_TRUE(files.write(folder.path() + "/key", "secret"));
  }
  EXPECT_EQ(count_files(folder), 0U);
}

TEST(NewFilesTest, NeverTakeThePlaceOfAFileNotEvenOfOneThatCameMeanwhile) {
  TemporaryFolder folder;
  folder.write("there", "old");
  NewFiles files;
  auto refused = files.reserve(folder.path() + "/there", 0600);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::already_exists);

  ASSERT_TRUE(files.reserve(folder.path() + "/first", 0600));
  ASSERT_TRUE(files.reserve(folder.path() + "/second", 0600));
  folder.write("second", "somebody else's");
  EXPECT_FALSE(files.publish());
  EXPECT_EQ(text_of(folder.path() + "/first"), "(absent)");
  EXPECT_EQ(text_of(folder.path() + "/second"), "somebody else's");
  EXPECT_EQ(count_files(folder), 2U);
}

TEST(NewFilesTest, ADanglingLinkIsInTheWayToo) {
  TemporaryFolder folder;
  std::filesystem::create_symlink("nowhere", folder.path() + "/key");
  NewFiles files;
  EXPECT_FALSE(files.reserve(folder.path() + "/key", 0600));
}

TEST(ReplaceKeepingOldTest, KeepsModeAndTheOldContentAside) {
  TemporaryFolder folder;
  std::string path = folder.write("key", "one", 0640);
  ASSERT_TRUE(replace_keeping_old(path, "two"));
  EXPECT_EQ(text_of(path), "two");
  EXPECT_EQ(text_of(path + ".old"), "one");
  EXPECT_EQ(mode_of(path), 0640U);
  ASSERT_TRUE(replace_keeping_old(path, "three"));
  EXPECT_EQ(text_of(path + ".old"), "two");
  EXPECT_EQ(count_files(folder), 2U);
  EXPECT_FALSE(replace_keeping_old(folder.path() + "/absent", "x"));
}

}  // namespace
}  // namespace hive::cli
