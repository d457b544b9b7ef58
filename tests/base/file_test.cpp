#include "base/file.h"

#include <cstdlib>
#include <filesystem>

#include <gtest/gtest.h>
#include <sys/stat.h>

namespace hive {
namespace {

class FileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "hive-file-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  [[nodiscard]] std::string path(std::string_view name) const { return (folder_ / name).string(); }

  std::filesystem::path folder_;
};

TEST_F(FileTest, WritesAndReadsBack) {
  ASSERT_TRUE(write_file_atomically(path("a"), "content", 0600).has_value());
  EXPECT_EQ(read_file(path("a"), 100), "content");
  struct stat status{};
  ASSERT_EQ(::stat(path("a").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600U);
}

TEST_F(FileTest, AFailedWriteLeavesTheOldFileAndNoTemporaryOne) {
  std::filesystem::create_directory(path("a"));
  EXPECT_FALSE(write_file_atomically(path("a"), "content", 0600).has_value());
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), 1);
}

TEST_F(FileTest, RefusesASecretThatOthersCanReadAndNamesTheRemedy) {
  ASSERT_TRUE(write_file_atomically(path("key"), "secret", 0644).has_value());
  auto read = read_file(path("key"), 100, FileSecrecy::owner_only);
  ASSERT_FALSE(read.has_value());
  EXPECT_NE(read.error().message.find("chmod 600 " + path("key")), std::string::npos);
  EXPECT_EQ(read.error().message.find("secret content"), std::string::npos);
}

TEST_F(FileTest, RefusesFilesOverTheLimit) {
  ASSERT_TRUE(write_file_atomically(path("a"), "12345", 0600).has_value());
  EXPECT_TRUE(read_file(path("a"), 5).has_value());
  EXPECT_EQ(read_file(path("a"), 4).error().code, ErrorCode::resource_exhausted);
}

TEST_F(FileTest, DoesNotWaitForAFifo) {
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
  EXPECT_EQ(read_file(path("pipe"), 100).error().code, ErrorCode::invalid_argument);
}

TEST_F(FileTest, NamesAFileThatIsNotThere) {
  EXPECT_NE(read_file(path("none"), 100).error().message.find(path("none")), std::string::npos);
}

TEST_F(FileTest, MakesPrivateFoldersAndTheFoldersAboveThem) {
  ASSERT_TRUE(make_private_folder(path("a/b/c")).has_value());
  struct stat status{};
  ASSERT_EQ(::stat(path("a/b/c").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0700U);
  EXPECT_TRUE(make_private_folder(path("a/b")).has_value());
  ASSERT_TRUE(write_file_atomically(path("file"), "", 0600).has_value());
  EXPECT_FALSE(make_private_folder(path("file")).has_value());
}

}  // namespace
}  // namespace hive
