#include <string>

#include <gtest/gtest.h>

#include "protocol/mcp/message.h"

namespace hive::mcp {
namespace {

Message request_with(std::string_view params) {
  return {.kind = MessageKind::request, .id = "5", .method = "tools/list", .params = params};
}

TEST(RequestMetaTest, ReadsEverythingThatAModernRequestCarries) {
  auto meta = parse_meta(request_with(
      R"({"_meta":{"progressToken":"p","io.modelcontextprotocol/protocolVersion":"2026-07-28",)"
      R"("io.modelcontextprotocol/clientCapabilities":{"sampling":{}},)"
      R"("io.modelcontextprotocol/clientInfo":{"name":"c"},"io.modelcontextprotocol/logLevel":"notice","own":1}})"));
  ASSERT_TRUE(meta.has_value());
  EXPECT_EQ(meta->progress_token, R"("p")");
  EXPECT_EQ(meta->protocol_version, "2026-07-28");
  EXPECT_EQ(meta->client_capabilities, R"({"sampling":{}})");
  EXPECT_EQ(meta->client_info, R"({"name":"c"})");
  EXPECT_EQ(meta->log_level, "notice");
  EXPECT_TRUE(meta->has_modern_keys);
}

TEST(RequestMetaTest, InventsNoProgressToken) {
  for (std::string_view params : {"", "{}", R"({"_meta":{}})", R"({"progressToken":1})"}) {
    auto meta = parse_meta(request_with(params));
    ASSERT_TRUE(meta.has_value()) << params;
    EXPECT_EQ(meta->progress_token, "") << params;
  }
}

TEST(RequestMetaTest, TakesLegacyRequestsForLegacy) {
  auto meta = parse_meta(request_with(R"({"_meta":{"progressToken":0,"io.modelcontextprotocol/related-task":{}}})"));
  ASSERT_TRUE(meta.has_value());
  EXPECT_EQ(meta->progress_token, "0");
  EXPECT_FALSE(meta->has_modern_keys);
}

TEST(RequestMetaTest, RefusesMembersOfTheWrongTypeByName) {
  struct Case {
    std::string_view meta;
    std::string_view named;
  };
  for (const Case& c : {Case{"7", "_meta"}, Case{"[]", "_meta"}, Case{R"({"progressToken":1.5})", "progressToken"},
                        Case{R"({"progressToken":null})", "progressToken"},
                        Case{R"({"io.modelcontextprotocol/protocolVersion":1})", "protocolVersion"},
                        Case{R"({"io.modelcontextprotocol/clientCapabilities":[]})", "clientCapabilities"},
                        Case{R"({"io.modelcontextprotocol/clientInfo":"me"})", "clientInfo"},
                        Case{R"({"io.modelcontextprotocol/logLevel":"loud"})", "logLevel"}}) {
    std::string params = R"({"_meta":)" + std::string(c.meta) + "}";
    auto meta = parse_meta(request_with(params));
    ASSERT_FALSE(meta.has_value()) << params;
    EXPECT_EQ(meta.error().code, -32602);
    EXPECT_EQ(meta.error().id, "5");
    EXPECT_EQ(meta.error().http_status, 400U);
    EXPECT_TRUE(meta.error().message.contains(c.named)) << meta.error().message;
  }
}

TEST(ModernRevisionTest, NeedsVersionAndCapabilities) {
  RequestMeta meta{.client_capabilities = "{}"};
  Fault fault = modern_revision(request_with("{}"), meta).error();
  EXPECT_EQ(fault.code, -32602);
  EXPECT_TRUE(fault.message.contains("io.modelcontextprotocol/protocolVersion"));
  meta = {.protocol_version = "2026-07-28"};
  fault = modern_revision(request_with("{}"), meta).error();
  EXPECT_EQ(fault.code, -32602);
  EXPECT_TRUE(fault.message.contains("io.modelcontextprotocol/clientCapabilities"));
  meta.client_capabilities = "{}";
  EXPECT_EQ(modern_revision(request_with("{}"), meta).value(), Revision::v2026_07_28);
}

TEST(ModernRevisionTest, AnswersAnotherVersionWithThoseThatAreSupported) {
  for (std::string_view version : {"1900-01-01", "2025-11-25"}) {
    RequestMeta meta{.protocol_version = std::string(version), .client_capabilities = "{}"};
    Fault fault = modern_revision(request_with("{}"), meta).error();
    EXPECT_EQ(fault.code, unsupported_version_code);
    EXPECT_EQ(fault.http_status, 400U);
    EXPECT_EQ(fault.data, R"({"supported":["2026-07-28"],)"
                          R"("requested":")" +
                              std::string(version) + "\"}");
  }
}

TEST(LogSeverityTest, KnowsTheEightLevels) {
  EXPECT_EQ(log_severity("emergency"), 0U);
  EXPECT_EQ(log_severity("warning"), 4U);
  EXPECT_EQ(log_severity("debug"), 7U);
  EXPECT_EQ(log_severity("trace"), std::nullopt);
  EXPECT_EQ(log_severity("INFO"), std::nullopt);
}

}  // namespace
}  // namespace hive::mcp
