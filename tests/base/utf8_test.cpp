#include "base/utf8.h"

#include <gtest/gtest.h>

namespace hive::utf8 {
namespace {

TEST(Utf8Test, AcceptsEveryLengthOfCodePoint) {
  EXPECT_TRUE(is_valid("a\xc3\xa9\xe2\x82\xac\xf0\x9f\x90\x9c plain text that is longer than a word"));
}

TEST(Utf8Test, RefusesOverlongFormsSurrogatesAndTooLargeValues) {
  for (std::string_view bad : {"\xc0\x80", "\xc1\xbf", "\xe0\x80\x80", "\xed\xa0\x80", "\xf0\x80\x80\x80",
                               "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\x80", "\xe2\x82", "\xff"}) {
    EXPECT_FALSE(is_valid(bad)) << bad;
  }
}

TEST(Utf8Test, ReplacesEachMaximalInvalidPartOnce) {
  EXPECT_EQ(replace_invalid("a\xe2\x82"), "a\xef\xbf\xbd");
  EXPECT_EQ(replace_invalid("\xc1"), "\xef\xbf\xbd");
  EXPECT_EQ(replace_invalid("\xf0\x9f\x90x"), "\xef\xbf\xbdx");
  EXPECT_EQ(replace_invalid("\xff\xfe"), "\xef\xbf\xbd\xef\xbf\xbd");
  EXPECT_TRUE(is_valid(replace_invalid("\xed\xa0\x80 \x9b tail")));
}

TEST(Utf8Test, TruncateNeverCutsACodePoint) {
  std::string_view euro = "ab\xe2\x82\xac";
  EXPECT_EQ(truncate(euro, 5), euro);
  EXPECT_EQ(truncate(euro, 4), "ab");
  EXPECT_EQ(truncate(euro, 3), "ab");
  EXPECT_EQ(truncate(euro, 2), "ab");
}

TEST(Utf8Test, IncompleteSuffixCountsOnlyWhatMayStillBecomeACodePoint) {
  EXPECT_EQ(incomplete_suffix("a\xe2\x82"), 2U);
  EXPECT_EQ(incomplete_suffix("a\xf0"), 1U);
  EXPECT_EQ(incomplete_suffix("a\xe2\x82\xac"), 0U);
  EXPECT_EQ(incomplete_suffix("a\xff"), 0U);
  EXPECT_EQ(incomplete_suffix("\x82\x82\x82\x82"), 0U);
}

}  // namespace
}  // namespace hive::utf8
