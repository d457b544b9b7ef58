#include "agent/end_limit.h"

#include <gtest/gtest.h>
#include <unistd.h>

namespace hive::agent {
namespace {

using std::chrono::milliseconds;

TEST(EndLimitDeathTest, EndsAProgramThatHangs) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        EndLimit limit(milliseconds(20));
        std::promise<void>().get_future().wait_for(std::chrono::minutes(1));
        ::_exit(3);
      },
      testing::ExitedWithCode(0), "does not end in good order");
}

TEST(EndLimitDeathTest, LeavesAProgramAloneThatEndsInTime) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        {
          EndLimit limit(std::chrono::minutes(1));
        }
        ::_exit(3);
      },
      testing::ExitedWithCode(3), "");
}

}  // namespace
}  // namespace hive::agent
