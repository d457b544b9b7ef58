// What an earlier guest left in an agent's folders, and what a system brings that a container is to be made of: nothing
// of it may lead the host's root elsewhere.
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "container/guest_agent.h"
#include "container/template_root.h"

namespace hive::container {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class HostileFolders : public ::testing::Test {
 protected:
  void SetUp() override {
    char folder[] = "/tmp/hive-hostile-test.XXXXXX";
    ASSERT_NE(::mkdtemp(folder), nullptr);
    layout_.prefix = folder;
    victim_ = layout_.at("/victim");
    state_ = layout_.agent("iris") + "/state";
    fs::create_directories(victim_);
    fs::create_directories(state_);
  }
  void TearDown() override { fs::remove_all(layout_.prefix); }

  Result<void> add_key() {
    auto keys = KeyFolder::open(record_, layout_);
    if (!keys) return std::unexpected(keys.error());
    return keys->add("id_ed25519", "secret");
  }

  Layout layout_;
  Record record_{.name = "h-iris", .uid = 20001, .bridge = {}, .gateway_ip = {}, .hive_agent = {}};
  std::string victim_;
  std::string state_;
};

TEST_F(HostileFolders, AKeyGoesIntoTheAgentsStateAsItsUsersOwn) {
  ASSERT_TRUE(add_key());
  struct stat status{};
  ASSERT_EQ(::lstat((state_ + "/myrmex-agent/id_ed25519").c_str(), &status), 0);
  EXPECT_EQ(status.st_uid, 20001U);
  EXPECT_EQ(status.st_mode & 07777, 0600U);
  ASSERT_EQ(::lstat((state_ + "/myrmex-agent").c_str(), &status), 0);
  EXPECT_EQ(status.st_uid, 20001U);
  EXPECT_EQ(status.st_mode & 07777, 0700U);
}

TEST_F(HostileFolders, AKeyOfAnEarlierContainerIsNotReplaced) {
  ASSERT_TRUE(add_key());
  auto again = add_key();
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, ErrorCode::already_exists);
}

TEST_F(HostileFolders, NoLinkInStateLeadsAKeyElsewhere) {
  fs::create_directory_symlink(victim_, state_ + "/myrmex-agent");
  EXPECT_FALSE(add_key());
  EXPECT_TRUE(fs::is_empty(victim_));
  struct stat status{};
  ASSERT_EQ(::stat(victim_.c_str(), &status), 0);
  EXPECT_EQ(status.st_uid, ::geteuid());

  fs::remove(state_ + "/myrmex-agent");
  fs::create_directory(state_ + "/myrmex-agent");
  fs::create_symlink(victim_ + "/key", state_ + "/myrmex-agent/id_ed25519");
  EXPECT_FALSE(add_key());
  EXPECT_TRUE(fs::is_empty(victim_));
}

TEST_F(HostileFolders, ASystemWithALinkWhereAFolderIsWrittenIsRefused) {
  for (const char* inner : {"dev", "etc", "etc/systemd", "var/lib/dbus", "usr/bin", "home"}) {
    const fs::path root = layout_.at("/system");
    fs::create_directories((root / inner).parent_path());
    fs::create_directory_symlink(victim_, root / inner);
    auto checked = check_template(root);
    ASSERT_FALSE(checked) << inner;
    EXPECT_THAT(checked.error().message, HasSubstr(std::string("/") + inner));
    fs::remove_all(root);
  }
}

TEST_F(HostileFolders, ASystemMayLackFoldersAndMayLinkItsMergedOnes) {
  const fs::path root = layout_.at("/system");
  fs::create_directories(root / "usr/lib");
  fs::create_directory_symlink("usr/lib", root / "lib");
  EXPECT_TRUE(check_template(root));
}

}  // namespace
}  // namespace hive::container
