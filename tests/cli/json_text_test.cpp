#include "cli/json_text.h"

#include <gtest/gtest.h>

#include "protocol/json.h"

namespace hive::cli {
namespace {

TEST(PrettyJson, IndentsByTwoSpacesAndKeepsOrderAndNumbers) {
  EXPECT_EQ(
      pretty_json(R"({"b":12.30,"a":[1e5,{"x":null}],"e":{},"f":[ ], "s":"a,b:{}" })"),
      "{\n  \"b\": 12.30,\n  \"a\": [\n    1e5,\n    {\n      \"x\": null\n    }\n  ],\n  \"e\": {},\n  \"f\": [],\n"
      "  \"s\": \"a,b:{}\"\n}\n");
  EXPECT_EQ(pretty_json("  5 "), "5\n");
  EXPECT_EQ(pretty_json(R"("\"quoted\\")"), "\"\\\"quoted\\\\\"\n");
}

TEST(PrettyJson, EscapesWhatCouldSteerTheTerminalAndStaysTheSameJson) {
  // C1 control CSI, right-to-left override, a tag character and DEL, raw inside a string.
  std::string hostile = "{\"a\":\"\u009b2J \u202etxt \U000e0041 \x7f é 日\"}";
  std::string pretty = pretty_json(hostile);
  EXPECT_EQ(pretty, "{\n  \"a\": \"\\u009b2J \\u202etxt \\udb40\\udc41 \\u007f é 日\"\n}\n");
  auto before = json::parse_object(hostile);
  auto after = json::parse_object(pretty);
  ASSERT_TRUE(before && after);
  EXPECT_EQ(json::decode_string(before->front().value), json::decode_string(after->front().value));
}

TEST(JsonForTerminal, ChangesNothingElse) {
  EXPECT_EQ(json_for_terminal("{ \"a\" : 1,\n\t\"b\":\"x\" }"), "{ \"a\" : 1,\n\t\"b\":\"x\" }");
  EXPECT_EQ(json_for_terminal("{}\r\n[\r]"), "{}\n[]") << "a carriage return between values could overprint a line";
}

}  // namespace
}  // namespace hive::cli
