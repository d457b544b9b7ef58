#include <string>

#include <gtest/gtest.h>

#include "protocol/mcp/translation.h"

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
  for (const Case& c :
       {Case{-32042, -32603, -32042}, Case{-32099, -32603, -32099}, Case{-32001, -32001, -32001},
        Case{-32021, -32021, -32600}, Case{-32003, -32003, -32003}, Case{-32601, -32601, -32601}, Case{17, 17, 17}}) {
    auto with_code = [](int code) { return fmt::format(R"({{"message":"m","code":{},"data":[1]}})", code); };
    EXPECT_EQ(adapt_error(with_code(c.code), "tools/call", v2026_07_28), with_code(c.modern));
    EXPECT_EQ(adapt_error(with_code(c.code), "tools/call", v2025_11_25), with_code(c.legacy));
  }
}

TEST(AdaptErrorTest, TellsNoClientToMendTheWayBetweenUsAndTheServer) {
  for (Revision revision : {v2026_07_28, v2025_11_25}) {
    EXPECT_EQ(adapt_error(R"({"code":-32022,"message":"m","data":{"supported":["x"]}})", "tools/call", revision),
              R"({"code":-32603,"message":"m","data":{"supported":["x"]}})");
    EXPECT_EQ(adapt_error(R"({"code":-32020,"message":"m"})", "tools/call", revision),
              R"({"code":-32603,"message":"m"})");
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

}  // namespace
}  // namespace hive::mcp
