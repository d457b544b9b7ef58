#include "net/ssh/line_buffer.h"

#include <gtest/gtest.h>

namespace hive::net::ssh {
namespace {

TEST(LineBufferTest, CutsWhatArrivesInPieces) {
  LineBuffer buffer(100);
  buffer.append("fir");
  EXPECT_FALSE(buffer.next_line());
  buffer.append("st\nsecond\nth");
  EXPECT_EQ(buffer.next_line(), "first");
  EXPECT_EQ(buffer.next_line(), "second");
  EXPECT_FALSE(buffer.next_line());
  buffer.compact();
  buffer.append("ird\n\n");
  EXPECT_EQ(buffer.next_line(), "third");
  EXPECT_EQ(buffer.next_line(), "");
  EXPECT_FALSE(buffer.next_line());
}

TEST(LineBufferTest, ALineMayHaveExactlyTheLimit) {
  LineBuffer buffer(4);
  buffer.append("1234\n12345\n");
  EXPECT_EQ(buffer.next_line(), "1234");
  EXPECT_FALSE(buffer.next_line());
  EXPECT_TRUE(buffer.line_too_long());
}

TEST(LineBufferTest, AnEndlessLineIsNoticedBeforeItsEnd) {
  LineBuffer buffer(4);
  buffer.append("1234");
  EXPECT_FALSE(buffer.next_line());
  EXPECT_FALSE(buffer.line_too_long());
  buffer.append("5");
  EXPECT_FALSE(buffer.next_line());
  EXPECT_TRUE(buffer.line_too_long());
  buffer.append("\nfine\n");
  EXPECT_FALSE(buffer.next_line()) << "nothing comes out after a line that is too long";
}

TEST(LineBufferTest, GivesLargeBuffersBackAndKeepsSmallOnes) {
  LineBuffer buffer(1 << 20);
  buffer.append(std::string(100'000, 'x') + "\n");
  EXPECT_TRUE(buffer.next_line());
  buffer.compact();
  EXPECT_LT(buffer.capacity(), 100U);
  buffer.append(std::string(200, 'x') + "\n");
  EXPECT_TRUE(buffer.next_line());
  buffer.compact();
  EXPECT_GE(buffer.capacity(), 200U);
  EXPECT_EQ(buffer.size(), 0U);
}

TEST(LineBufferTest, TheRestOfABatchSurvivesCompaction) {
  LineBuffer buffer(100);
  for (int round = 0; round < 1000; ++round) {
    buffer.append("line " + std::to_string(round) + "\npart");
    EXPECT_EQ(buffer.next_line(), (round == 0 ? "line " : "partline ") + std::to_string(round));
    buffer.compact();
    EXPECT_LE(buffer.size(), 4U);
    EXPECT_LT(buffer.capacity(), 200U);
  }
}

TEST(LineBufferTest, ZeroBytesAreOrdinary) {
  LineBuffer buffer(100);
  buffer.append(std::string_view("a\0b\n", 4));
  EXPECT_EQ(buffer.next_line(), std::string_view("a\0b", 3));
}

}  // namespace
}  // namespace hive::net::ssh
