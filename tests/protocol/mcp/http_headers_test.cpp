#include "protocol/mcp/http_headers.h"

#include <map>
#include <string>

#include <gtest/gtest.h>

namespace hive::mcp {
namespace {

using Headers = std::map<std::string, std::string, std::less<>>;

HeaderLookup lookup(const Headers& headers) {
  return [&headers](std::string_view name) -> std::optional<std::string_view> {
    auto found = headers.find(name);
    return found == headers.end() ? std::nullopt : std::optional<std::string_view>(found->second);
  };
}

Message call(std::string_view params, std::string method = "tools/call") {
  return {.kind = MessageKind::request, .id = "5", .method = std::move(method), .params = params};
}

RequestMeta modern() {
  return {.protocol_version = "2026-07-28", .client_capabilities = "{}", .has_modern_keys = true};
}

int code_of(const std::expected<void, Fault>& checked) {
  if (checked) return 0;
  EXPECT_EQ(checked.error().http_status, 400U);
  EXPECT_EQ(checked.error().id, "5");
  return checked.error().code;
}

TEST(HeaderValueTest, IsPlainWhereItCanBeAndBase64WhereItMustBe) {
  struct Case {
    std::string_view value;
    std::string_view header;
  };
  for (const Case& c : {Case{"us-west1", "us-west1"}, Case{"", ""}, Case{"a b\tc", "a b\tc"},
                        Case{" padded ", "=?base64?IHBhZGRlZCA=?="},
                        Case{"Hello, \xe4\xb8\x96\xe7\x95\x8c", "=?base64?SGVsbG8sIOS4lueVjA==?="},
                        Case{"line1\nline2", "=?base64?bGluZTEKbGluZTI=?="},
                        Case{"=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="}}) {
    EXPECT_EQ(encode_header_value(c.value), c.header);
    EXPECT_EQ(decode_header_value(c.header), c.value);
  }
}

TEST(HeaderValueTest, SurvivesTheWayThereAndBackWhateverItIs) {
  for (std::string_view value : {"=?base64?=",
                                 "=?base64?"
                                 "?=",
                                 "=?BASE64?eA==?=", "=?base64?x", "\x7f", "\t", "?="})
    EXPECT_EQ(decode_header_value(encode_header_value(value)), value);
}

TEST(HeaderValueTest, IsRefusedWithCharactersThatMustBeEncodedAndWithBadBase64) {
  for (std::string_view header :
       {"caf\xc3\xa9", "a\x01", "=?base64?!!!?=", "=?base64?eA?=", "=?base64?eA= =?=", "=?base64?/w==?="})
    EXPECT_EQ(decode_header_value(header), std::nullopt) << header;
}

TEST(CheckHeadersTest, AcceptsHeadersThatAgreeWithTheBody) {
  Headers headers = {
      {"mcp-protocol-version", "2026-07-28"}, {"mcp-method", "tools/call"}, {"mcp-name", "=?base64?ZGlzaw==?="}};
  EXPECT_EQ(code_of(check_headers(lookup(headers), call(R"({"name":"disk"})"), modern())), 0);
  headers["mcp-name"] = "disk";
  EXPECT_EQ(code_of(check_headers(lookup(headers), call(R"({"name":"disk"})"), modern())), 0);
  headers = {{"mcp-protocol-version", "2026-07-28"}, {"mcp-method", "tools/list"}};
  EXPECT_EQ(code_of(check_headers(lookup(headers), call("{}", "tools/list"), modern())), 0);
  headers = {{"mcp-protocol-version", "2026-07-28"}, {"mcp-method", "resources/read"}, {"mcp-name", "file:///a b"}};
  EXPECT_EQ(code_of(check_headers(lookup(headers), call(R"({"uri":"file:///a b"})", "resources/read"), modern())), 0);
}

TEST(CheckHeadersTest, RefusesAMissingOrDifferentHeaderAndNamesIt) {
  struct Case {
    std::string_view header;
    std::optional<std::string> value;
    std::string_view named;
  };
  for (const Case& c : {Case{"mcp-protocol-version", std::nullopt, "MCP-Protocol-Version"},
                        Case{"mcp-protocol-version", "2025-11-25", "MCP-Protocol-Version"},
                        Case{"mcp-method", std::nullopt, "Mcp-Method"}, Case{"mcp-method", "tools/list", "Mcp-Method"},
                        Case{"mcp-method", "TOOLS/CALL", "Mcp-Method"}, Case{"mcp-name", std::nullopt, "Mcp-Name"},
                        Case{"mcp-name", "other", "Mcp-Name"}, Case{"mcp-name", "=?base64?eA?=", "Mcp-Name"}}) {
    Headers headers = {{"mcp-protocol-version", "2026-07-28"}, {"mcp-method", "tools/call"}, {"mcp-name", "disk"}};
    headers.erase(std::string(c.header));
    if (c.value) headers.emplace(c.header, *c.value);
    auto checked = check_headers(lookup(headers), call(R"({"name":"disk"})"), modern());
    EXPECT_EQ(code_of(checked), header_mismatch_code) << c.header;
    EXPECT_TRUE(checked.error().message.contains(c.named)) << checked.error().message;
  }
}

TEST(CheckHeadersTest, AnswersABodyWithoutVersionWithInvalidParams) {
  Headers headers = {{"mcp-protocol-version", "2026-07-28"}, {"mcp-method", "tools/list"}};
  EXPECT_EQ(code_of(check_headers(lookup(headers), call("{}", "tools/list"), {})), -32602);
}

TEST(RequestHeadersTest, MirrorMethodAndName) {
  auto headers = request_headers("tools/call", R"({"name":"d\u00e9"})");
  ASSERT_EQ(headers.size(), 2U);
  EXPECT_EQ(headers[0].name, "Mcp-Method");
  EXPECT_EQ(headers[0].value, "tools/call");
  EXPECT_EQ(headers[1].name, "Mcp-Name");
  EXPECT_EQ(headers[1].value, "=?base64?ZMOp?=");
  EXPECT_EQ(request_headers("tools/list", R"({"name":"x"})").size(), 1U);
}

TEST(AcceptsTest, TakesTheHeadersThatRealClientsSend) {
  for (std::string_view accept :
       {"application/json, text/event-stream", "*/*", "application/json;q=0.9, text/event-stream;q=0.1",
        "text/event-stream , APPLICATION/JSON", "text/*, application/*", ""}) {
    EXPECT_TRUE(accepts(accept, "application/json")) << accept;
    EXPECT_TRUE(accepts(accept, "text/event-stream")) << accept;
  }
  EXPECT_TRUE(accepts(std::nullopt, "application/json"));
  EXPECT_TRUE(accepts("application/json", "application/json"));
  EXPECT_FALSE(accepts("application/json", "text/event-stream"));
  EXPECT_TRUE(accepts("application/json; charset=utf-8; q=1.000", "application/json"));
}

TEST(AcceptsTest, LetsTheMostSpecificRangeDecide) {
  EXPECT_FALSE(accepts("*/*, text/event-stream;q=0", "text/event-stream"));
  EXPECT_TRUE(accepts("*/*;q=0, text/event-stream", "text/event-stream"));
  EXPECT_FALSE(accepts("text/*;q=0.0, */*", "text/event-stream"));
  EXPECT_TRUE(accepts("text/event-stream;q=0.001", "text/event-stream"));
}

TEST(AcceptsTest, TakesAWeightThatIsNoneForARefusal) {
  for (std::string_view accept : {"text/html", "application/jsonx", "application/json;q=-1", "application/json;q=2",
                                  "application/json;q=x", "application/json;q=", ";;,,", "json"})
    EXPECT_FALSE(accepts(accept, "application/json")) << accept;
}

}  // namespace
}  // namespace hive::mcp
