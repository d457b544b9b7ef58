#include "cli/call_arguments.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hive::cli {
namespace {

using testing::HasSubstr;

constexpr std::string_view run_command_schema =
    R"({"type":"object","properties":{"name":{"type":"string"},"args":{"type":"array","items":{"type":"string"}},
        "dry_run":{"type":"boolean"},"sizes":{"type":"array"}},"required":["name"]})";

std::string arguments_of(std::vector<std::string> words, std::string_view base = "{}", std::string_view schema = {}) {
  auto arguments = call_arguments(base, words, schema);
  return arguments ? *arguments : "error: " + arguments.error().message;
}

TEST(CallArguments, WithoutWordsAreTheBaseAsWritten) {
  EXPECT_EQ(arguments_of({}, R"({"n": 1e400, "a":[1, 2]})"), R"({"n": 1e400, "a":[1, 2]})");
}

TEST(CallArguments, TakeNumbersBooleansNullArraysAndObjectsAsJson) {
  EXPECT_EQ(arguments_of({"a=5", "b=-1.50", "c=true", "d=null", "e=[1,\"x\"]", "f={\"k\":2}"}),
            R"({"a":5,"b":-1.50,"c":true,"d":null,"e":[1,"x"],"f":{"k":2}})");
}

TEST(CallArguments, TakeEverythingElseAsText) {
  EXPECT_EQ(
      arguments_of({"a=hello world", "b=", "c=05", "d=1 ", "e=\"quoted\"", "f=-h", "g=True", "h=[oops", "i=a=b"}),
      R"({"a":"hello world","b":"","c":"05","d":"1 ","e":"\"quoted\"","f":"-h","g":"True","h":"[oops","i":"a=b"})");
}

TEST(CallArguments, ColonEqualsForcesJson) {
  EXPECT_EQ(arguments_of({"a:=\"5\"", "b:=[1]"}), R"({"a":"5","b":[1]})");
  EXPECT_THAT(arguments_of({"a:=oops"}), AllOf(HasSubstr("\"a\""), HasSubstr("not JSON")));
}

TEST(CallArguments, ARepeatedKeyMakesAnArrayInOrder) {
  EXPECT_EQ(arguments_of({"name=df", "args=-h", "args=/tmp"}), R"({"name":"df","args":["-h","/tmp"]})");
}

TEST(CallArguments, TheSchemaMakesOneValueAnElementOfAnArray) {
  EXPECT_EQ(arguments_of({"name=df", "args=-h"}, "{}", run_command_schema), R"({"name":"df","args":["-h"]})");
  EXPECT_EQ(arguments_of({"sizes=5"}, "{}", run_command_schema), R"({"sizes":[5]})");
}

TEST(CallArguments, TheSchemaKeepsTextsTexts) {
  EXPECT_EQ(arguments_of({"name=5", "args=8080", "args=true", "dry_run=true"}, "{}", run_command_schema),
            R"({"name":"5","args":["8080","true"],"dry_run":true})");
}

TEST(CallArguments, AWholeArrayStaysThatArray) {
  EXPECT_EQ(arguments_of({"args=[\"-h\",\"/\"]"}, "{}", run_command_schema), R"({"args":["-h","/"]})");
}

TEST(CallArguments, JsonOverridesTheSchema) {
  EXPECT_EQ(arguments_of({"name:=7", "args:=7"}, "{}", run_command_schema), R"({"name":7,"args":7})");
}

TEST(CallArguments, ABrokenSchemaChangesNothing) {
  for (const char* schema : {"[]", "{", "{\"properties\":[]}", "{\"properties\":{\"a\":5}}"})
    EXPECT_EQ(arguments_of({"a=5"}, "{}", schema), R"({"a":5})") << schema;
}

TEST(CallArguments, JoinTheBaseButNeverReplaceItsKeys) {
  EXPECT_EQ(arguments_of({"b=2"}, R"({"a":1.0})"), R"({"a":1.0,"b":2})");
  EXPECT_THAT(arguments_of({"a=2"}, R"({"a":1})"), HasSubstr("given both"));
}

TEST(CallArguments, NameTheWordThatIsWrong) {
  EXPECT_THAT(arguments_of({"uptime"}), HasSubstr("\"uptime\": not of the form key=value"));
  EXPECT_THAT(arguments_of({"=5"}), HasSubstr("key before"));
  EXPECT_THAT(arguments_of({":=5"}), HasSubstr("key before"));
  EXPECT_THAT(arguments_of({"\x1b[2Jx"}), HasSubstr("\\x1b[2Jx"));
}

TEST(CallArguments, RefuseABaseThatIsNoObject) {
  EXPECT_THAT(arguments_of({}, "[]"), HasSubstr("must be a JSON object"));
  EXPECT_THAT(arguments_of({}, "{\"a\":"), HasSubstr("not valid JSON"));
  EXPECT_THAT(arguments_of({}, R"({"a":1,"a":2})"), HasSubstr("not valid JSON"));
}

TEST(CallArguments, CannotSmuggleKeysThroughAWord) {
  EXPECT_EQ(arguments_of({"a\",\"b=1"}), R"({"a\",\"b":1})");
}

}  // namespace
}  // namespace hive::cli
