#include "net/ssh/output_queue.h"

#include <gtest/gtest.h>

namespace hive::net::ssh {
namespace {

TEST(OutputQueueTest, AddsNewlinesAndGivesPieces) {
  OutputQueue queue(100);
  EXPECT_TRUE(queue.push_line("one"));
  EXPECT_TRUE(queue.push_line(""));
  EXPECT_TRUE(queue.push_line("two"));
  EXPECT_EQ(queue.front(5), "one\n\n");
  queue.pop(5);
  EXPECT_EQ(queue.front(100), "two\n");
  queue.pop(2);
  EXPECT_EQ(queue.front(100), "o\n");
  queue.pop(2);
  EXPECT_TRUE(queue.empty());
}

TEST(OutputQueueTest, RefusesWhatDoesNotFitAndKeepsTheRest) {
  OutputQueue queue(10);
  EXPECT_TRUE(queue.push_line("12345"));
  EXPECT_FALSE(queue.push_line("1234"));
  EXPECT_TRUE(queue.push_line("123"));
  EXPECT_EQ(queue.size(), 10U);
  EXPECT_FALSE(queue.push_line(""));
  EXPECT_EQ(queue.front(100), "12345\n123\n");
}

TEST(OutputQueueTest, ALineThatCanNeverFitIsRefused) {
  OutputQueue queue(10);
  EXPECT_FALSE(queue.push_line("1234567890"));
  EXPECT_TRUE(queue.push_line("123456789"));
}

TEST(OutputQueueTest, SaysOnceThatThereIsRoomAgain) {
  OutputQueue queue(10);
  EXPECT_FALSE(queue.take_writable_again());
  EXPECT_TRUE(queue.push_line("123456789"));
  EXPECT_FALSE(queue.push_line("x"));
  queue.pop(5);
  EXPECT_FALSE(queue.take_writable_again()) << "only below half";
  queue.pop(1);
  EXPECT_TRUE(queue.take_writable_again());
  EXPECT_FALSE(queue.take_writable_again());
}

TEST(OutputQueueTest, GivesLargeBuffersBackAndDoesNotGrowWhileItMoves) {
  OutputQueue queue(1 << 20);
  EXPECT_TRUE(queue.push_line(std::string(500'000, 'x')));
  queue.pop(500'001);
  EXPECT_LT(queue.capacity(), 100U);
  for (int round = 0; round < 1000; ++round) {
    EXPECT_TRUE(queue.push_line(std::string(999, 'x')));
    if (round > 0) queue.pop(1000);
  }
  EXPECT_LE(queue.capacity(), 8000U);
}

}  // namespace
}  // namespace hive::net::ssh
