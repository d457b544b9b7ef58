#include <map>
#include <string>

#include <gtest/gtest.h>

#include "protocol/mcp/http_headers.h"

namespace hive::mcp {
namespace {

constexpr std::string_view schema = R"({"type":"object","properties":{
  "region":{"type":"string","x-mcp-header":"Region"},
  "count":{"type":"integer","x-mcp-header":"Count"},
  "deep":{"type":"object","properties":{"dry":{"type":"boolean","x-mcp-header":"Dry-Run"}}},
  "query":{"type":"string"}}})";

using Headers = std::map<std::string, std::string, std::less<>>;

std::expected<void, Fault> check(const Headers& headers, std::string_view arguments, std::string_view raw = schema) {
  std::string params = R"({"name":"sql","arguments":)" + std::string(arguments) + "}";
  Message request{.kind = MessageKind::request, .id = "1", .method = "tools/call", .params = params};
  return check_parameter_headers(
      [&](std::string_view name) -> std::optional<std::string_view> {
        auto found = headers.find(name);
        return found == headers.end() ? std::nullopt : std::optional<std::string_view>(found->second);
      },
      request, raw);
}

TEST(MirroredParametersTest, AreFoundWhereverPropertiesLead) {
  auto found = mirrored_parameters(schema);
  ASSERT_TRUE(found.has_value()) << found.error().message;
  ASSERT_EQ(found->size(), 3U);
  EXPECT_EQ((*found)[0].header, "Region");
  EXPECT_EQ((*found)[2].header, "Dry-Run");
  EXPECT_EQ((*found)[2].path, (std::vector<std::string>{"deep", "dry"}));
}

TEST(MirroredParametersTest, AreFoundHoweverTheWordIsWritten) {
  auto found = mirrored_parameters(R"({"properties":{"a":{"type":"string","x-mcp-\u0068eader":"A"}}})");
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->size(), 1U);
}

TEST(MirroredParametersTest, AreNoneInDataThatOnlyLooksLikeThem) {
  for (std::string_view harmless :
       {R"({})", R"(true)", R"({"properties":{"x-mcp-header":{"type":"string"}}})",
        R"({"properties":{"a":{"type":"object","default":{"x-mcp-header":"A"},"enum":[{"x-mcp-header":"B"}]}}})"}) {
    auto found = mirrored_parameters(harmless);
    ASSERT_TRUE(found.has_value()) << harmless << found.error().message;
    EXPECT_TRUE(found->empty()) << harmless;
  }
}

TEST(MirroredParametersTest, MakeASchemaInvalidWhereTheyBreakARule) {
  for (std::string_view bad :
       {R"({"x-mcp-header":"A","type":"string"})", R"({"properties":{"a":{"type":"string","x-mcp-header":""}}})",
        R"({"properties":{"a":{"type":"string","x-mcp-header":"A B"}}})",
        R"({"properties":{"a":{"type":"string","x-mcp-header":"A\r\nX"}}})",
        R"({"properties":{"a":{"type":"string","x-mcp-header":7}}})",
        R"({"properties":{"a":{"type":"number","x-mcp-header":"A"}}})", R"({"properties":{"a":{"x-mcp-header":"A"}}})",
        R"({"properties":{"a":{"type":["string"],"x-mcp-header":"A"}}})",
        R"({"properties":{"a":{"type":"string","x-mcp-header":"A"},"b":{"type":"string","x-mcp-header":"a"}}})",
        R"({"properties":{"a":{"items":{"type":"string","x-mcp-header":"A"}}}})",
        R"({"properties":{"a":{"items":{"properties":{"b":{"type":"string","x-mcp-header":"A"}}}}}})",
        R"({"anyOf":[{"properties":{"a":{"type":"string","x-mcp-header":"A"}}}]})",
        R"({"$defs":{"d":{"type":"string","x-mcp-header":"A"}}})",
        R"({"if":{"properties":{"a":{"type":"string","x-mcp-header":"A"}}}})"})
    EXPECT_FALSE(mirrored_parameters(bad).has_value()) << bad;
}

TEST(CheckParameterHeadersTest, AcceptsHeadersThatSayWhatTheArgumentsSay) {
  Headers headers = {{"mcp-param-region", "us-west1"}, {"mcp-param-count", "42"}, {"mcp-param-dry-run", "true"}};
  EXPECT_TRUE(check(headers, R"({"region":"us-west1","count":42,"deep":{"dry":true}})").has_value());
  headers["mcp-param-region"] = "=?base64?dXMtd2VzdDE=?=";
  headers["mcp-param-count"] = "42.0";
  EXPECT_TRUE(check(headers, R"({"region":"us-west1","count":42,"deep":{"dry":true}})").has_value());
}

TEST(CheckParameterHeadersTest, ExpectsNoHeaderForNullAndForWhatIsNotThere) {
  EXPECT_TRUE(check({}, R"({"region":null,"query":"q"})").has_value());
  EXPECT_TRUE(check({}, "{}").has_value());
  EXPECT_TRUE(check({}, R"({"deep":7})").has_value());
}

TEST(CheckParameterHeadersTest, RefusesEveryDifference) {
  struct Case {
    Headers headers;
    std::string_view arguments;
  };
  for (const Case& c :
       {Case{{}, R"({"region":"a"})"}, Case{{{"mcp-param-region", "b"}}, R"({"region":"a"})"},
        Case{{{"mcp-param-region", "a"}}, "{}"}, Case{{{"mcp-param-region", "a"}}, R"({"region":null})"},
        Case{{{"mcp-param-region", "caf\xc3\xa9"}}, R"({"region":"café"})"},
        Case{{{"mcp-param-count", "43"}}, R"({"count":42})"}, Case{{{"mcp-param-count", "42.5"}}, R"({"count":42.5})"},
        Case{{{"mcp-param-count", "9007199254740992"}}, R"({"count":9007199254740992})"},
        Case{{{"mcp-param-count", "0x2a"}}, R"({"count":42})"},
        Case{{{"mcp-param-count", "42"}}, R"({"count":"42.0"})"},
        Case{{{"mcp-param-dry-run", "True"}}, R"({"deep":{"dry":true}})"}, Case{{}, R"({"region":{"a":1}})"}}) {
    auto checked = check(c.headers, c.arguments);
    ASSERT_FALSE(checked.has_value()) << c.arguments;
    EXPECT_EQ(checked.error().code, header_mismatch_code);
    EXPECT_EQ(checked.error().http_status, 400U);
    EXPECT_TRUE(checked.error().message.contains("Mcp-Param-")) << checked.error().message;
  }
}

TEST(CheckParameterHeadersTest, TrustsNoHeaderOfASchemaThatBreaksTheRules) {
  EXPECT_FALSE(check({}, "{}", R"({"properties":{"a":{"type":"number","x-mcp-header":"A"}}})").has_value());
}

TEST(ParameterHeadersTest, AreWhatAServerExpects) {
  std::string_view arguments = R"({"region":" \u00e9","count":-7,"deep":{"dry":false},"query":"x"})";
  auto made = parameter_headers(schema, arguments);
  ASSERT_TRUE(made.has_value());
  ASSERT_EQ(made->size(), 3U);
  EXPECT_EQ((*made)[0].name, "Mcp-Param-Region");
  EXPECT_EQ((*made)[0].value, "=?base64?IMOp?=");
  EXPECT_EQ((*made)[1].value, "-7");
  EXPECT_EQ((*made)[2].value, "false");
  Headers headers;
  for (const Header& header : *made) {
    std::string name = header.name;
    for (char& c : name)
      c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    headers.emplace(name, header.value);
  }
  EXPECT_TRUE(check(headers, arguments).has_value());
}

TEST(ParameterHeadersTest, FailForAValueThatNoHeaderCanCarry) {
  auto made = parameter_headers(schema, R"({"count":1.5})");
  ASSERT_FALSE(made.has_value());
  EXPECT_TRUE(made.error().message.contains("count"));
}

}  // namespace
}  // namespace hive::mcp
