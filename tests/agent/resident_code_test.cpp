#include "agent/resident_code.h"

#include <fstream>
#include <sstream>
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
  EXPECT_EQ((std::ostringstream() << 42).str(), "42");
  long before = resident_file_kilobytes();
  release_start_code();
  long after = resident_file_kilobytes();
  EXPECT_GT(before, 0);
  EXPECT_LT(after, before);
  EXPECT_EQ((std::ostringstream() << 42).str(), "42");
}

}  // namespace
}  // namespace hive::agent
