#include "protocol/json.h"

#include <string>

#include <gtest/gtest.h>

#include "protocol/document.h"

namespace hive::json {
namespace {

TEST(JsonTest, AcceptsWhatRfc8259Accepts) {
  for (std::string_view good :
       {"null", "true", "false", "0", "-0", "12.5e-3", "1E+2", "\"\"", "\"\\u00e9\\n\\/\"", "\"\\ud83d\\udc1c\"", "[]",
        "{}", " [ 1 , {\"a\" : [ ] } ] ", "{\"a\":1,\"b\":{\"a\":1}}", "\"caf\xc3\xa9\""}) {
    EXPECT_TRUE(validate(good).has_value()) << good << ": " << validate(good).error().message;
  }
}

TEST(JsonTest, RefusesWhatRfc8259Refuses) {
  for (std::string_view bad : {"",
                               " ",
                               "nul",
                               "01",
                               "1.",
                               ".5",
                               "+1",
                               "1e",
                               "-",
                               "\"",
                               "\"\\x\"",
                               "\"\\u12g4\"",
                               "\"\t\"",
                               "[1,]",
                               "[,]",
                               "[1 2]",
                               "{\"a\"}",
                               "{\"a\":}",
                               "{a:1}",
                               "{\"a\":1,}",
                               "[1",
                               "{",
                               "1 2",
                               "'a'",
                               "NaN",
                               "\xef\xbb\xbf{}",
                               "\"\xff\"",
                               "\"\\ud800\"",
                               "\"\\udc00\"",
                               "\"\\ud800\\u0041\"",
                               "tru",
                               "[1]]"}) {
    EXPECT_FALSE(validate(bad).has_value()) << bad;
  }
}

TEST(JsonTest, RefusesDuplicateKeysAlsoWhenOneIsWrittenWithEscapes) {
  EXPECT_FALSE(validate(R"({"method":1,"method":2})").has_value());
  EXPECT_FALSE(validate(R"({"a":1,"\u0061":2})").has_value());
  EXPECT_FALSE(validate(R"([{"x":{"k":1,"k":1}}])").has_value());
  EXPECT_TRUE(validate(R"([{"k":1},{"k":1}])").has_value());
}

TEST(JsonTest, FindsADuplicateInALargeObject) {
  std::string text = "{";
  for (int i = 0; i < 1000; ++i)
    text += fmt::format("\"k{}\":{},", i, i);
  EXPECT_TRUE(validate(text + "\"last\":0}").has_value());
  EXPECT_FALSE(validate(text + "\"k500\":0}").has_value());
}

TEST(JsonTest, StopsAtTheDepthLimitHoweverDeepTheTextIs) {
  std::string nested(100'000, '[');
  EXPECT_EQ(validate(nested).error().code, ErrorCode::resource_exhausted);
  std::string objects;
  for (int i = 0; i < 100'000; ++i)
    objects += "{\"a\":";
  EXPECT_EQ(validate(objects).error().code, ErrorCode::resource_exhausted);
  std::string allowed = std::string(64, '[') + std::string(64, ']');
  EXPECT_TRUE(validate(allowed).has_value());
  EXPECT_FALSE(validate("[" + allowed + "]").has_value());
}

TEST(JsonTest, HoldsTheLimitsOnBytesAndValues) {
  EXPECT_EQ(validate("[1,2,3]", {.max_bytes = 6}).error().code, ErrorCode::resource_exhausted);
  EXPECT_TRUE(validate("[1,2,3]", {.max_values = 4}).has_value());
  EXPECT_EQ(validate("[1,2,3,4]", {.max_values = 4}).error().code, ErrorCode::resource_exhausted);
}

TEST(JsonTest, SaysWhereAndWhatIsWrong) {
  EXPECT_EQ(validate("{\"a\":tru}").error().message, "not acceptable JSON at byte 5: unknown word");
}

TEST(JsonTest, GivesMembersAsRawTextByteForByte) {
  auto members = parse_object(R"( {"id" : 1.0e0 , "\u0061":"\u0041","big":123456789012345678901234567890} )");
  ASSERT_TRUE(members.has_value());
  EXPECT_EQ(find(*members, "id"), "1.0e0");
  EXPECT_EQ(find(*members, "a"), R"("\u0041")");
  EXPECT_EQ(find(*members, "big"), "123456789012345678901234567890");
  EXPECT_FALSE(find(*members, "none").has_value());
}

TEST(JsonTest, GivesElementsAsRawText) {
  auto elements = parse_array(R"([ 1, [2], {"a":3} ])");
  ASSERT_TRUE(elements.has_value());
  EXPECT_EQ(*elements, (std::vector<std::string_view>{"1", "[2]", "{\"a\":3}"}));
  EXPECT_FALSE(parse_array("{}").has_value());
  EXPECT_FALSE(parse_object("[]").has_value());
}

TEST(JsonTest, DecodesStringsWithEscapesAndSurrogatePairs) {
  EXPECT_EQ(decode_string(R"("a\n\u00e9\ud83d\udc1c\"")"), "a\n\xc3\xa9\xf0\x9f\x90\x9c\"");
  EXPECT_FALSE(decode_string("1").has_value());
  EXPECT_FALSE(decode_string("\"a\" ").has_value());
}

TEST(JsonTest, DecodesIntegersOnlyWhenTheyAreExact) {
  EXPECT_EQ(decode_integer("-7"), -7);
  for (std::string_view bad : {"1.0", "1e2", "\"1\"", "9223372036854775808", "true", ""}) {
    EXPECT_FALSE(decode_integer(bad).has_value()) << bad;
  }
}

TEST(JsonTest, EncodesTextSoThatItNeverBreaksALine) {
  std::string encoded = encode_string(std::string_view("a\"\\\n\r\x0b\x7f\0\xe2\x80\xa8\xc2\x85\xff z", 16));
  EXPECT_EQ(encoded, "\"a\\\"\\\\\\n\\r\\u000b\\u007f\\u0000\\u2028\\u0085\xef\xbf\xbd z\"");
  EXPECT_TRUE(validate(encoded).has_value());
}

TEST(JsonTest, WhatIsEncodedDecodesToTheSameText) {
  std::string text;
  for (int c = 0; c < 128; ++c)
    text += static_cast<char>(c);
  text += "\xe2\x82\xac\xe2\x80\xa9 and a longer tail of plain text";
  EXPECT_EQ(decode_string(encode_string(text)), text);
}

TEST(DocumentTest, BuildsADocumentWithinTheLimits) {
  auto document = parse(R"({"a":[1,2.5,"x"]})");
  ASSERT_TRUE(document.has_value());
  EXPECT_EQ(document->at("a").as_array().size(), 3U);
  EXPECT_FALSE(parse(R"({"a":1,"a":2})").has_value());
  std::string deepest = std::string(64, '[') + std::string(64, ']');
  EXPECT_TRUE(parse(deepest).has_value());
}

TEST(DocumentTest, PrintsIndentedWithoutBreakingEmptyContainers) {
  EXPECT_EQ(to_pretty_text(*parse(R"({"a":[],"b":{"c":1}})")), "{\n  \"a\": [],\n  \"b\": {\n    \"c\": 1\n  }\n}\n");
}

}  // namespace
}  // namespace hive::json
