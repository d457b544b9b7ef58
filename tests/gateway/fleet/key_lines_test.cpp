#include "gateway/fleet/key_lines.h"

#include <filesystem>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "crypto/scratch_folder.h"
#include "gateway/fleet/key_fixture.h"

namespace hive::fleet {
namespace {

using test::new_key;

TEST(KeyLinesTest, AppendsALineAndEndsTheLineBeforeIt) {
  crypto::PublicKey key = new_key("edge-1");
  EXPECT_EQ(with_key("", key), key.to_line() + "\n");
  EXPECT_EQ(with_key("# no newline", key), "# no newline\n" + key.to_line() + "\n");
  EXPECT_EQ(with_key("# crlf\r\n", key), "# crlf\r\n" + key.to_line() + "\n");
}

TEST(KeyLinesTest, RemovesTheLinesOfAnAgentAndKeepsEveryOtherByte) {
  std::string mine = new_key("edge-1").to_line();
  std::string other = new_key("edge-2").to_line();
  std::string before = "# people\r\n\r\n\tjunk \xff\x01 line\n";
  std::string after = "\n\n  " + other + "\r\n# end without newline";
  KeyRemoval removal = without_keys(before + "from=\"10.0.0.0/8\" " + mine + "\n" + after, "edge-1");
  EXPECT_EQ(removal.removed, 1U);
  EXPECT_EQ(removal.text, before + after);
}

TEST(KeyLinesTest, RemovesTheLastLineWithoutNewline) {
  std::string mine = new_key("edge-1").to_line();
  EXPECT_EQ(without_keys("# a\n" + mine, "edge-1").text, "# a\n");
  EXPECT_EQ(without_keys(mine, "edge-1").text, "");
}

TEST(KeyLinesTest, RemovesOneKeyOfSeveral) {
  crypto::PublicKey first = new_key("edge-1");
  crypto::PublicKey second = new_key("edge-1");
  KeyRemoval removal = without_keys(first.to_line() + "\n" + second.to_line() + "\n", "edge-1", first.fingerprint());
  EXPECT_EQ(removal.removed, 1U);
  EXPECT_EQ(removal.text, second.to_line() + "\n");
}

TEST(KeyLinesTest, AKeyOfAnotherAgentIsNotRemovedByItsFingerprint) {
  crypto::PublicKey key = new_key("edge-2");
  EXPECT_EQ(without_keys(key.to_line() + "\n", "edge-1", key.fingerprint()).removed, 0U);
}

// A repeated key is refused only while the first one stands; else revocation would bring it to life.
TEST(KeyLinesTest, ARepeatedKeyDoesNotComeToLife) {
  crypto::PublicKey key = new_key("edge-1");
  std::string blob = key.to_line().substr(0, key.to_line().rfind(' '));
  std::string text = blob + " edge-1\n# between\n" + blob + " edge-2\n" + blob + " edge-1\n";
  KeyRemoval removal = without_keys(text, "edge-1");
  EXPECT_EQ(removal.removed, 3U);
  EXPECT_EQ(removal.text, "# between\n");
}

TEST(KeyLinesTest, ReplacingAFileKeepsItsModeAndALinkToIt) {
  hive::test::ScratchFolder folder;
  std::string file = folder.write("keys", "old", 0640);
  std::filesystem::create_symlink("keys", folder.path("link"));
  ASSERT_TRUE(replace_keeping_attributes(folder.path("link"), "new"));
  EXPECT_TRUE(std::filesystem::is_symlink(folder.path("link")));
  EXPECT_EQ(hive::test::content_of(file), "new");
  struct stat status{};
  ASSERT_EQ(::stat(file.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0640U);
}

TEST(KeyLinesTest, ALockHoldsOthersOffUntilItIsGone) {
  hive::test::ScratchFolder folder;
  std::string file = folder.write("keys", "");
  {
    auto lock = FileLock::take(file);
    ASSERT_TRUE(lock) << lock.error().message;
    auto attempt = hive::test::run_command("flock -n " + file + ".lock true");
    EXPECT_NE(attempt.status, 0);
  }
  EXPECT_EQ(hive::test::run_command("flock -n " + file + ".lock true").status, 0);
}

}  // namespace
}  // namespace hive::fleet
