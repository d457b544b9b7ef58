#include "base/strings.h"

#include <array>

#include <gtest/gtest.h>

namespace hive {
namespace {

TEST(StringsTest, SplitKeepsEmptyParts) {
  EXPECT_EQ(split("a,,b", ',').size(), 3U);
  EXPECT_EQ(split("", ',').size(), 1U);
  EXPECT_EQ(split("a,", ',').back(), "");
}

TEST(StringsTest, TrimRemovesWhiteSpaceAtBothEnds) {
  EXPECT_EQ(trim(" \t a b \r\n"), "a b");
  EXPECT_EQ(trim(" \n"), "");
}

TEST(StringsTest, ParseInt64TakesWholeDecimalNumbersOnly) {
  EXPECT_EQ(parse_int64("-42"), -42);
  for (std::string_view bad : {"", " 1", "1 ", "+1", "0x1", "1.0", "9223372036854775808"}) {
    EXPECT_FALSE(parse_int64(bad).has_value()) << bad;
  }
}

TEST(StringsTest, Base64RoundTripsEveryLength) {
  std::vector<std::uint8_t> bytes;
  for (int i = 0; i < 70; ++i) {
    EXPECT_EQ(from_base64(to_base64(bytes)), bytes);
    bytes.push_back(static_cast<std::uint8_t>(i * 37));
  }
}

TEST(StringsTest, Base64RefusesEverythingThatIsNotCanonical) {
  for (std::string_view bad : {"A", "AAA", "AA=A", "====", "AB==", "AAB=", "AA\n=", "A A=", "AAAA===="}) {
    EXPECT_FALSE(from_base64(bad).has_value()) << bad;
  }
}

TEST(StringsTest, HexRoundTripsAndRefusesOddText) {
  EXPECT_EQ(to_hex(std::array<std::uint8_t, 2>{0x0f, 0xa0}), "0fa0");
  EXPECT_EQ(from_hex("0fA0"), (std::vector<std::uint8_t>{0x0f, 0xa0}));
  EXPECT_FALSE(from_hex("0f0").has_value());
  EXPECT_FALSE(from_hex("0g").has_value());
}

TEST(StringsTest, EscapesWhatCouldTakeOverATerminal) {
  EXPECT_EQ(escape_for_terminal("\x1b]52;c;eA==\x07"), "\\x1b]52;c;eA==\\x07");
  EXPECT_EQ(escape_for_terminal("a\rb"), "a\\rb");
  EXPECT_EQ(escape_for_terminal("\xc2\x9b"), "\\u{009b}");
  EXPECT_EQ(escape_for_terminal("abc\xe2\x80\xaetxt"), "abc\\u{202e}txt");
  EXPECT_EQ(escape_for_terminal("\x9b\xff"), "\\x9b\\xff");
  EXPECT_EQ(escape_for_terminal("caf\xc3\xa9"), "caf\xc3\xa9");
}

TEST(StringsTest, KeepsNewlinesOnlyWhenAsked) {
  EXPECT_EQ(escape_for_terminal("a\n\tb"), "a\\n\\tb");
  EXPECT_EQ(escape_for_terminal("a\n\tb", true), "a\n\tb");
}

TEST(StringsTest, QuoteEscapesQuotesAndBackslashes) {
  EXPECT_EQ(quote("a\"b\\c\n"), "\"a\\\"b\\\\c\\n\"");
}

TEST(StringsTest, NearestNameFindsTypingErrorsAndNothingElse) {
  constexpr std::array<std::string_view, 3> names = {"gateway_addr", "agent_id", "private_key_path"};
  EXPECT_EQ(nearest_name("gatway_addr", names), "gateway_addr");
  EXPECT_EQ(nearest_name("agentid", names), "agent_id");
  EXPECT_FALSE(nearest_name("colour", names).has_value());
}

TEST(StringsTest, ConstantTimeEqualComparesLikeEqual) {
  EXPECT_TRUE(constant_time_equal("secret", "secret"));
  EXPECT_FALSE(constant_time_equal("secret", "secreT"));
  EXPECT_FALSE(constant_time_equal("secret", "secret1"));
  EXPECT_TRUE(constant_time_equal("", ""));
}

TEST(AgentIdTest, FollowsOneAsciiGrammar) {
  EXPECT_TRUE(check_agent_id("edge-7_b").has_value());
  EXPECT_TRUE(check_agent_id("EDGE-7").has_value());
  const std::string too_long(65, 'a');
  for (std::string_view bad : {std::string_view(""), std::string_view("../x"), std::string_view("-h"),
                               std::string_view("*"), std::string_view("a b"), std::string_view("a__b"),
                               std::string_view("gateway"), std::string_view("a\0b", 3), std::string_view(too_long)}) {
    EXPECT_FALSE(check_agent_id(bad).has_value()) << bad;
  }
}

TEST(AgentIdTest, NamesTheCodePointThatIsNotAllowed) {
  EXPECT_NE(check_agent_id("verify_\xd5\xbd"
                           "er")
                .error()
                .message.find("U+057D"),
            std::string::npos);
  EXPECT_NE(check_agent_id("a\xe2\x80\x8b"
                           "b")
                .error()
                .message.find("U+200B"),
            std::string::npos);
}

}  // namespace
}  // namespace hive
