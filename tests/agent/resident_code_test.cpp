#include "agent/resident_code.h"

#include <fstream>
#include <regex>
#include <string>

#include <gtest/gtest.h>

namespace hive::agent {
namespace {

// Kilobytes of files that are mapped and in memory, from /proc/self/status.
long resident_file_kilobytes() {
  std::ifstream status("/proc/self/status");
  std::string word;
  long kilobytes = -1;
  while (status >> word) {
    if (word == "RssFile:") status >> kilobytes;
  }
  return kilobytes;
}

TEST(ResidentCode, IsLetGoAndComesBackWhenItIsUsed) {
  EXPECT_TRUE(std::regex_match("abc", std::regex("[a-c]+")));
  long before = resident_file_kilobytes();
  release_start_code();
  long after = resident_file_kilobytes();
  EXPECT_GT(before, 0);
  EXPECT_LT(after, before);
  EXPECT_TRUE(std::regex_match("abc", std::regex("[a-c]+")));
}

}  // namespace
}  // namespace hive::agent
