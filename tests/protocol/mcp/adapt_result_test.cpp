#include <string>

#include <gtest/gtest.h>

#include "protocol/json.h"
#include "protocol/mcp/translation.h"

namespace hive::mcp {
namespace {

using enum Revision;

constexpr std::string_view server_info = R"({"name":"hive","version":"1"})";

std::string adapt(std::string_view raw, std::string_view method, Revision revision, const CacheHint& hint = {}) {
  std::string adapted = adapt_result(raw, method, revision, server_info, hint);
  EXPECT_TRUE(json::validate(adapted).has_value()) << adapted;
  return adapted;
}

TEST(AdaptResultTest, TellsAModernClientThatItIsCompleteAndFromWhom) {
  EXPECT_EQ(adapt(R"({"content":[],"_meta":{"own":1}})", "tools/call", v2026_07_28),
            R"({"content":[],"_meta":{"own":1,"io.modelcontextprotocol/serverInfo":{"name":"hive","version":"1"}},)"
            R"("resultType":"complete"})");
}

TEST(AdaptResultTest, SpeaksForItselfAndNotForTheServerBehindIt) {
  std::string adapted =
      adapt(R"({"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"other"}},"resultType":"complete"})",
            "prompts/get", v2026_07_28);
  EXPECT_FALSE(adapted.contains("other"));
  EXPECT_TRUE(adapted.contains(server_info));
  EXPECT_FALSE(adapt_result(adapted, "prompts/get", v2026_07_28, "", {}).contains("serverInfo"));
}

TEST(AdaptResultTest, KeepsAnotherResultType) {
  std::string_view question = R"({"resultType":"input_required","inputRequests":{},"requestState":"s"})";
  std::string adapted = adapt(question, "tools/call", v2026_07_28);
  EXPECT_EQ(result_type(adapted), "input_required");
  EXPECT_EQ(result_type(adapt(question, "tools/call", v2025_11_25)), "input_required");
  EXPECT_FALSE(adapt(question, "resources/read", v2026_07_28).contains("ttlMs"));
}

TEST(AdaptResultTest, GivesCacheHintsWhereTheMethodHasThem) {
  CacheHint hint{.time_to_live = std::chrono::milliseconds(5000), .scope = CacheScope::shared};
  for (std::string_view method : {"tools/list", "prompts/list", "resources/list", "resources/templates/list",
                                  "resources/read", "server/discover"}) {
    std::string adapted = adapt("{}", method, v2026_07_28, hint);
    EXPECT_TRUE(adapted.contains(R"("ttlMs":5000)")) << adapted;
    EXPECT_TRUE(adapted.contains(R"("cacheScope":"public")")) << adapted;
  }
  for (std::string_view method : {"tools/call", "prompts/get", "completion/complete"})
    EXPECT_FALSE(adapt("{}", method, v2026_07_28, hint).contains("ttlMs")) << method;
}

TEST(AdaptResultTest, KeepsTheHintsOfTheResultButSharesNothingThatBelongsToOneCaller) {
  CacheHint hint{.time_to_live = std::chrono::milliseconds(5000), .scope = CacheScope::shared};
  std::string adapted = adapt(R"({"ttlMs":7,"cacheScope":"private"})", "tools/list", v2026_07_28, hint);
  EXPECT_TRUE(adapted.contains(R"("ttlMs":7,"cacheScope":"private")")) << adapted;
  hint.scope = CacheScope::per_caller;
  adapted = adapt(R"({"ttlMs":-7,"cacheScope":"public"})", "tools/list", v2026_07_28, hint);
  EXPECT_TRUE(adapted.contains(R"("ttlMs":5000,"cacheScope":"private")")) << adapted;
}

TEST(AdaptResultTest, TakesFromALegacyClientWhatOnlyModernOnesHave) {
  std::string_view modern =
      R"({"tools":[],"ttlMs":5,"cacheScope":"public","resultType":"complete","own":1,)"
      R"("_meta":{"io.modelcontextprotocol/serverInfo":{},"own":2,"io.modelcontextprotocol/related-task":{}}})";
  EXPECT_EQ(adapt(modern, "tools/list", v2025_11_25),
            R"({"tools":[],"own":1,"_meta":{"own":2,"io.modelcontextprotocol/related-task":{}}})");
  EXPECT_EQ(adapt(R"({"content":[],"_meta":{"io.modelcontextprotocol/serverInfo":{}}})", "tools/call", v2025_11_25),
            R"({"content":[]})");
}

TEST(AdaptResultTest, LeavesAResultOfTheSameRevisionByteForByte) {
  std::string_view result =
      R"({ "content" : [{"type":"audio","data":"AA==","mimeType":"audio/wav"}],  "structuredContent":{"a":1.50} })";
  EXPECT_EQ(adapt(result, "tools/call", v2025_11_25), result);
}

TEST(AdaptResultTest, TurnsAudioIntoTextForTheOldestRevision) {
  std::string_view result =
      R"({"content":[{"type":"text","text":"a"},{"type":"audio","data":"AAAAAAAA","mimeType":"audio/wav"}]})";
  EXPECT_EQ(adapt(result, "tools/call", v2025_03_26), result);
  EXPECT_EQ(
      adapt(result, "tools/call", v2024_11_05),
      R"({"content":[{"type":"text","text":"a"},{"type":"text","text":"[audio, audio/wav, about 6 bytes: revision )"
      R"(2024-11-05 of the protocol cannot carry it]"}]})");
  EXPECT_EQ(
      adapt(R"({"messages":[{"role":"user","content":{"type":"audio","data":"","mimeType":"audio/wav"}}]})",
            "prompts/get", v2024_11_05),
      R"({"messages":[{"role":"user","content":{"type":"text","text":"[audio, audio/wav, about 0 bytes: revision )"
      R"(2024-11-05 of the protocol cannot carry it]"}}]})");
}

TEST(AdaptResultTest, TurnsLinksToResourcesIntoTextBefore20250618) {
  std::string_view result = R"({"content":[{"type":"resource_link","uri":"file:///a","name":"a","description":"log",)"
                            R"("icons":[],"annotations":{"priority":1}}]})";
  EXPECT_EQ(adapt(result, "tools/call", v2025_11_25), result);
  EXPECT_EQ(adapt(result, "tools/call", v2025_06_18),
            R"({"content":[{"type":"resource_link","uri":"file:///a","name":"a","description":"log",)"
            R"("annotations":{"priority":1}}]})");
  EXPECT_EQ(adapt(result, "tools/call", v2025_03_26),
            R"({"content":[{"type":"text","annotations":{"priority":1},"text":"[resource a: file:///a] log"}]})");
}

TEST(AdaptResultTest, KeepsStructuredContentWhereTheRevisionCanCarryIt) {
  std::string_view object = R"({"content":[{"type":"text","text":"a"}],"structuredContent":{"a":1}})";
  EXPECT_EQ(adapt(object, "tools/call", v2025_06_18), object);
  EXPECT_EQ(adapt(object, "tools/call", v2025_03_26), R"({"content":[{"type":"text","text":"a"}]})");
  std::string_view array = R"({"content":[{"type":"text","text":"a"}],"structuredContent":[1]})";
  EXPECT_TRUE(adapt(array, "tools/call", v2026_07_28).contains(R"("structuredContent":[1])"));
  EXPECT_EQ(adapt(array, "tools/call", v2025_11_25), R"({"content":[{"type":"text","text":"a"}]})");
}

TEST(AdaptResultTest, SaysInTextWhatStoodInStructuredContentAlone) {
  EXPECT_EQ(adapt(R"({"content":[],"structuredContent":{"a":"b"}})", "tools/call", v2025_03_26),
            R"({"content":[{"type":"text","text":"{\"a\":\"b\"}"}]})");
}

TEST(AdaptResultTest, ListsToolsWithTheFieldsOfTheRevision) {
  std::string_view list =
      R"({"tools":[{"name":"a","title":"A","annotations":{},"outputSchema":{"type":"object"},"icons":[],"execution":{},)"
      R"("inputSchema":{"type":"object","title":"T"},"own":1}]})";
  EXPECT_EQ(adapt(list, "tools/list", v2025_11_25), list);
  EXPECT_EQ(adapt(list, "tools/list", v2025_06_18),
            R"({"tools":[{"name":"a","title":"A","annotations":{},"outputSchema":{"type":"object"},)"
            R"("inputSchema":{"type":"object","title":"T"},"own":1}]})");
  EXPECT_EQ(adapt(list, "tools/list", v2025_03_26),
            R"({"tools":[{"name":"a","annotations":{},"inputSchema":{"type":"object","title":"T"},"own":1}]})");
  EXPECT_EQ(adapt(list, "tools/list", v2024_11_05),
            R"({"tools":[{"name":"a","inputSchema":{"type":"object","title":"T"},"own":1}]})");
  EXPECT_FALSE(adapt(list, "tools/list", v2026_07_28).contains("execution"));
}

TEST(AdaptResultTest, ListsNoOutputSchemaThatALegacyClientCannotUnderstand) {
  std::string_view list = R"({"tools":[{"name":"a","outputSchema":{"type":"array"}},{"name":"b"}]})";
  EXPECT_EQ(adapt(list, "tools/list", v2025_11_25), R"({"tools":[{"name":"a"},{"name":"b"}]})");
  EXPECT_TRUE(adapt(list, "tools/list", v2026_07_28).contains("outputSchema"));
}

TEST(AdaptResultTest, ListsPromptsAndResourcesWithTheFieldsOfTheRevision) {
  EXPECT_EQ(adapt(R"({"prompts":[{"name":"p","title":"P","icons":[],"arguments":[{"name":"x","title":"X"}]}]})",
                  "prompts/list", v2025_03_26),
            R"({"prompts":[{"name":"p","arguments":[{"name":"x"}]}]})");
  EXPECT_EQ(adapt(R"({"resources":[{"uri":"a","icons":[],"title":"T"}]})", "resources/list", v2025_06_18),
            R"({"resources":[{"uri":"a","title":"T"}]})");
  EXPECT_EQ(
      adapt(R"({"resourceTemplates":[{"uriTemplate":"a","title":"T"}]})", "resources/templates/list", v2025_03_26),
      R"({"resourceTemplates":[{"uriTemplate":"a"}]})");
  EXPECT_EQ(
      adapt(R"({"serverInfo":{"name":"n","version":"1","title":"T","websiteUrl":"u"}})", "initialize", v2025_03_26),
      R"({"serverInfo":{"name":"n","version":"1"}})");
}

TEST(AdaptResultTest, TakesWhatIsNoResultForAFailureAndNoMetaForNone) {
  for (std::string_view raw : {"", "7", "[1]", "null"}) {
    EXPECT_TRUE(adapt(raw, "tools/call", v2025_11_25).contains(R"("isError":true)")) << raw;
    EXPECT_EQ(adapt(raw, "prompts/get", v2025_11_25), "{}") << raw;
  }
  EXPECT_EQ(adapt(R"({"_meta":null,"a":1})", "prompts/get", v2025_11_25), R"({"a":1})");
}

TEST(ResultTypeTest, IsCompleteUnlessItSaysOtherwise) {
  EXPECT_EQ(result_type("{}"), "complete");
  EXPECT_EQ(result_type(R"({"resultType":"input_required"})"), "input_required");
  EXPECT_EQ(result_type(R"({"resultType":"task"})"), "task");
  EXPECT_EQ(result_type(R"({"resultType":null})"), "null");
}

}  // namespace
}  // namespace hive::mcp
