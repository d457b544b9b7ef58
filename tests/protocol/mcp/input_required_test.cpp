#include <array>
#include <string>

#include <gtest/gtest.h>

#include "protocol/mcp/translation.h"

namespace hive::mcp {
namespace {

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

}  // namespace
}  // namespace hive::mcp
