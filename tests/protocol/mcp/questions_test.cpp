#include "protocol/mcp/questions.h"

#include <string>

#include <gtest/gtest.h>

namespace hive::mcp {
namespace {

using enum Revision;

TEST(MissingCapabilityTest, IsEmptyForAClientThatCanBeAsked) {
  EXPECT_EQ(missing_capability(R"({"roots":{}})", "roots/list", "{}"), "");
  EXPECT_EQ(missing_capability(R"({"sampling":{}})", "sampling/createMessage", R"({"maxTokens":1})"), "");
  EXPECT_EQ(missing_capability(R"({"sampling":{"tools":{}}})", "sampling/createMessage", R"({"tools":[]})"), "");
}

TEST(MissingCapabilityTest, NamesTheCapabilityThatIsNotDeclared) {
  EXPECT_EQ(missing_capability("{}", "roots/list", "{}"), R"({"roots":{}})");
  EXPECT_EQ(missing_capability(R"({"elicitation":true})", "elicitation/create", "{}"), R"({"elicitation":{}})");
  EXPECT_EQ(missing_capability("", "sampling/createMessage", "{}"), R"({"sampling":{}})");
}

TEST(MissingCapabilityTest, TakesAnEmptyElicitationForFormsAlone) {
  std::string_view form = R"({"message":"?","requestedSchema":{}})";
  std::string_view url = R"({"mode":"url","url":"https://example.com"})";
  EXPECT_EQ(missing_capability(R"({"elicitation":{}})", "elicitation/create", form), "");
  EXPECT_EQ(missing_capability(R"({"elicitation":{}})", "elicitation/create", url), R"({"elicitation":{"url":{}}})");
  EXPECT_EQ(missing_capability(R"({"elicitation":{"form":{},"url":{}}})", "elicitation/create", form), "");
  EXPECT_EQ(missing_capability(R"({"elicitation":{"form":{},"url":{}}})", "elicitation/create", url), "");
  EXPECT_EQ(missing_capability(R"({"elicitation":{"url":{}}})", "elicitation/create", form),
            R"({"elicitation":{"form":{}}})");
  EXPECT_NE(missing_capability(R"({"elicitation":{}})", "elicitation/create", R"({"mode":"telepathy"})"), "");
  EXPECT_NE(missing_capability(R"({"elicitation":{}})", "elicitation/create", R"({"mode":7})"), "");
}

TEST(MissingCapabilityTest, NeedsItsPartForSamplingWithTools) {
  EXPECT_EQ(missing_capability(R"({"sampling":{}})", "sampling/createMessage", R"({"toolChoice":{}})"),
            R"({"sampling":{"tools":{}}})");
}

TEST(MissingCapabilityTest, IsNeverEmptyForAMethodThatNoClientAnswers) {
  EXPECT_EQ(missing_capability(R"({"tools":{}})", "tools/call", "{}"), "{}");
}

TEST(AdaptQuestionTest, GivesALinkTheIdThatOneRevisionAsksFor) {
  std::string_view link = R"({"mode":"url","message":"m","url":"https://example.com"})";
  EXPECT_EQ(adapt_question(link, "elicitation/create", v2025_11_25, "e1"),
            R"({"mode":"url","message":"m","url":"https://example.com","elicitationId":"e1"})");
  EXPECT_EQ(adapt_question(link, "elicitation/create", v2026_07_28, "e1"), link);
  std::string_view with_id = R"({"mode":"url","elicitationId":"own","task":{}})";
  EXPECT_EQ(adapt_question(with_id, "elicitation/create", v2025_11_25, "e1"), with_id);
  EXPECT_EQ(adapt_question(with_id, "elicitation/create", v2026_07_28, "e1"), R"({"mode":"url"})");
}

TEST(AdaptQuestionTest, ShowsAnOldClientAFormWithoutMode) {
  std::string_view form = R"({"mode":"form","message":"m","requestedSchema":{}})";
  EXPECT_EQ(adapt_question(form, "elicitation/create", v2025_06_18, "e1"), R"({"message":"m","requestedSchema":{}})");
  EXPECT_EQ(adapt_question(form, "elicitation/create", v2025_11_25, "e1"), form);
}

TEST(AdaptQuestionTest, LeavesOutTheServersProgressToken) {
  EXPECT_EQ(adapt_question(R"({"messages":[],"_meta":{"progressToken":1,"own":2}})", "sampling/createMessage",
                           v2025_11_25, ""),
            R"({"messages":[],"_meta":{"own":2}})");
}

TEST(AdaptQuestionTest, MakesAnObjectOfNothing) {
  EXPECT_EQ(adapt_question("", "roots/list", v2025_11_25, ""), "{}");
}

TEST(QuestionKeyTest, SaysWhoIsAskedAndForWhat) {
  auto form = [](std::string_view properties) {
    return R"({"message":"?","requestedSchema":{"type":"object","properties":)" + std::string(properties) + "}}";
  };
  EXPECT_EQ(question_key("elicitation/create", form(R"({"name":{"type":"string"}})")), "user_name");
  EXPECT_EQ(question_key("elicitation/create", form(R"({"ok to go":{}})")), "user_ok_to_go");
  EXPECT_EQ(question_key("elicitation/create", form(R"({"name":{},"email":{}})")), "user_input");
  EXPECT_EQ(question_key("elicitation/create", form(R"({"":{}})")), "user_input");
  EXPECT_EQ(question_key("elicitation/create", form("{\"" + std::string(400, 'x') + "\":{}}")), "user_input");
  EXPECT_EQ(question_key("elicitation/create", "{}"), "user_input");
  EXPECT_EQ(question_key("elicitation/create", R"({"mode":"url","url":"https://example.com"})"), "user_visit");
  EXPECT_EQ(question_key("sampling/createMessage", "{}"), "model_message");
  EXPECT_EQ(question_key("roots/list", "{}"), "client_roots");
}

TEST(CapabilityMissedInTest, KnowsTheWordsOfTheOfficialSdks) {
  EXPECT_EQ(capability_missed_in("Client does not support sampling (required for sampling/createMessage)"), "sampling");
  EXPECT_EQ(capability_missed_in("Client does not support elicitation (required for elicitation/create)"),
            "elicitation");
  EXPECT_EQ(capability_missed_in("MCP error -32603: Client does not support listing roots (required for roots/list)"),
            "roots");
  EXPECT_EQ(capability_missed_in("The client does not declare the elicitation capability."), "elicitation");
}

TEST(CapabilityMissedInTest, TakesNoOtherFailureForIt) {
  for (std::string_view words :
       {"", "sampling failed", "The client does not support this.", "The server does not support sampling",
        "the client supports sampling, but not now", "Client does not support gzip.\nsampling"}) {
    EXPECT_EQ(capability_missed_in(words), "") << words;
  }
  std::string far = "client does not support" + std::string(100, '.') + "sampling";
  EXPECT_EQ(capability_missed_in(far), "");
  EXPECT_EQ(capability_missed_in(std::string(600, ' ') + "client does not support sampling"), "");
}

}  // namespace
}  // namespace hive::mcp
