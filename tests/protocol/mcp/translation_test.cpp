#include "protocol/mcp/translation.h"

#include <array>
#include <set>
#include <string>

#include <gtest/gtest.h>

namespace hive::mcp {
namespace {

using enum Revision;

TEST(AdaptErrorTest, TranslatesTheCodeOfAMissingResourceBothWaysAndKeepsItsData) {
  std::string_view legacy = R"({"code":-32002,"message":"no","data":{"uri":"a:b"}})";
  std::string_view modern = R"({"code":-32602,"message":"no","data":{"uri":"a:b"}})";
  EXPECT_EQ(adapt_error(legacy, "resources/read", v2026_07_28), modern);
  EXPECT_EQ(adapt_error(modern, "resources/read", v2025_11_25), legacy);
  EXPECT_EQ(adapt_error(legacy, "resources/read", v2025_11_25), legacy);
  EXPECT_EQ(adapt_error(modern, "resources/read", v2026_07_28), modern);
}

TEST(AdaptErrorTest, LeavesOtherInvalidParamsAlone) {
  std::string_view error = R"({"code":-32602,"message":"no"})";
  EXPECT_EQ(adapt_error(error, "resources/read", v2025_11_25), error);
  std::string_view tool = R"({"code":-32602,"message":"no","data":{"uri":"a:b"}})";
  EXPECT_EQ(adapt_error(tool, "tools/call", v2025_11_25), tool);
}

TEST(AdaptErrorTest, EmitsNoCodeThatTheRevisionForbids) {
  struct Case {
    int code;
    int modern;
    int legacy;
  };
  for (const Case& c : {Case{-32042, -32603, -32042}, Case{-32099, -32603, -32099}, Case{-32020, -32020, -32600},
                        Case{-32021, -32021, -32600}, Case{-32022, -32022, -32602}, Case{-32001, -32001, -32001},
                        Case{-32601, -32601, -32601}, Case{17, 17, 17}}) {
    auto with_code = [](int code) { return fmt::format(R"({{"message":"m","code":{},"data":[1]}})", code); };
    EXPECT_EQ(adapt_error(with_code(c.code), "tools/call", v2026_07_28), with_code(c.modern));
    EXPECT_EQ(adapt_error(with_code(c.code), "tools/call", v2025_11_25), with_code(c.legacy));
  }
}

TEST(AdaptErrorTest, MakesAnErrorOfWhatIsNone) {
  for (std::string_view raw :
       {"", "{}", "7", R"({"code":"x","message":"m"})", R"({"code":1})", R"({"code":1.5,"message":"m"})"})
    EXPECT_TRUE(adapt_error(raw, "tools/call", v2026_07_28).starts_with(R"({"code":-32603,"message":)")) << raw;
}

TEST(HttpStatusTest, FollowsTheCode) {
  auto status = [](int code) { return http_status_of_error(fmt::format(R"({{"code":{},"message":""}})", code)); };
  EXPECT_EQ(status(-32601), 404U);
  for (int code : {-32700, -32600, -32020, -32021, -32022})
    EXPECT_EQ(status(code), 400U) << code;
  for (int code : {-32602, -32603, -32002, -32023, 0, 1})
    EXPECT_EQ(status(code), 200U) << code;
  EXPECT_EQ(http_status_of_error("rubbish"), 200U);
}

TEST(CapabilityTest, BelongsToAServerRequest) {
  EXPECT_EQ(capability_of("elicitation/create"), "elicitation");
  EXPECT_EQ(capability_of("sampling/createMessage"), "sampling");
  EXPECT_EQ(capability_of("roots/list"), "roots");
  EXPECT_EQ(capability_of("tools/call"), "");
}

TEST(CapabilityTest, IsDeclaredByAnObject) {
  EXPECT_TRUE(has_capability(R"({"sampling":{},"roots":{"listChanged":true}})", "sampling"));
  EXPECT_FALSE(has_capability(R"({"sampling":{}})", "roots"));
  for (std::string_view none : {"", "{}", R"({"sampling":true})", R"({"sampling":null})", "[]"})
    EXPECT_FALSE(has_capability(none, "sampling")) << none;
}

TEST(InputRequiredTest, ComesBackAsItWasSent) {
  std::array requests = {InputRequest{.key = "na\"me", .method = "elicitation/create", .params = R"({"message":"?"})"},
                         InputRequest{.key = "roots", .method = "roots/list", .params = {}}};
  std::string encoded = encode_input_required(requests, "st\"ate");
  EXPECT_EQ(encoded,
            R"({"resultType":"input_required","inputRequests":{"na\"me":{"method":"elicitation/create","params":)"
            R"({"message":"?"}},"roots":{"method":"roots/list","params":{}}},"requestState":"st\"ate"})");
  Result<InputRequired> parsed = parse_input_required(encoded);
  ASSERT_TRUE(parsed.has_value()) << parsed.error().message;
  ASSERT_EQ(parsed->requests.size(), 2U);
  EXPECT_EQ(parsed->requests[0].key, "na\"me");
  EXPECT_EQ(parsed->requests[0].params, R"({"message":"?"})");
  EXPECT_EQ(parsed->requests[1].params, "{}");
  EXPECT_EQ(parsed->request_state, R"("st\"ate")");
}

TEST(InputRequiredTest, MayHaveStateAlone) {
  EXPECT_EQ(encode_input_required({}, "s"), R"({"resultType":"input_required","requestState":"s"})");
  EXPECT_TRUE(parse_input_required(R"({"resultType":"input_required","requestState":"s"})")->requests.empty());
}

TEST(InputRequiredTest, IsRefusedWhereItIsNotWellFormed) {
  for (std::string_view bad :
       {"{}", R"({"resultType":"complete","requestState":"s"})", R"({"resultType":"input_required"})",
        R"({"resultType":"input_required","requestState":{}})", R"({"resultType":"input_required","inputRequests":[]})",
        R"({"resultType":"input_required","inputRequests":{"a":{}}})",
        R"({"resultType":"input_required","inputRequests":{"a":{"method":7}}})",
        R"({"resultType":"input_required","inputRequests":{"a":{"method":"m","params":[]}}})"})
    EXPECT_FALSE(parse_input_required(bad).has_value()) << bad;
  std::string many = R"({"resultType":"input_required","inputRequests":{"k":{"method":"roots/list"})";
  for (int i = 0; i < 64; ++i)
    many += fmt::format(R"(,"k{}":{{"method":"roots/list"}})", i);
  EXPECT_EQ(parse_input_required(many + "}}").error().code, ErrorCode::resource_exhausted);
}

TEST(PublicToolNameTest, JoinsPrefixAndToolWhereThatIsAName) {
  EXPECT_EQ(public_tool_name("git", "read_file"), "git__read_file");
  EXPECT_EQ(public_tool_name("", "read_file"), "read_file");
  EXPECT_EQ(public_tool_name("a", "b__c"), "a__b__c");
  std::string exact(61, 't');
  EXPECT_EQ(public_tool_name("a", exact), "a__" + exact);
}

TEST(PublicToolNameTest, ShortensInAStableWayWhatIsNoName) {
  std::string name = public_tool_name("a", std::string(62, 't'));
  EXPECT_EQ(name.size(), 64U);
  EXPECT_EQ(name, public_tool_name("a", std::string(62, 't')));
  EXPECT_NE(name, public_tool_name("a", std::string(63, 't')));
  EXPECT_TRUE(name.starts_with("a__ttt"));
  EXPECT_EQ(name[53], '-');
  EXPECT_EQ(name.find_first_not_of("0123456789abcdef", 54), std::string::npos);
  std::string odd = public_tool_name("", "run caf\xc3\xa9");
  EXPECT_TRUE(odd.starts_with("run_caf__-")) << odd;
  EXPECT_TRUE(public_tool_name("a", "").starts_with("a__-"));
}

TEST(PublicToolNameTest, GivesNoTwoServersTheSameName) {
  std::set<std::string> names = {public_tool_name("a", "b__c"),    public_tool_name("a__b", "c"),
                                 public_tool_name("a", "_b"),      public_tool_name("a_", "b"),
                                 public_tool_name("a__b__c", "d"), public_tool_name("a__b", "c__d")};
  EXPECT_EQ(names.size(), 6U);
}

}  // namespace
}  // namespace hive::mcp
