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

}  // namespace
}  // namespace hive::mcp
