#include "gateway/surfaces/mcp/core_fixture.h"

namespace hive::mcp_surface::test {
namespace {

class CallAgentsTest : public CoreTest {
 protected:
  static std::string call(std::string_view arguments) {
    return R"({"name":"gateway__call_agents","arguments":)" + std::string(arguments) + "}";
  }
  static calls::CallResult text_of(std::string_view text) {
    return success(R"({"content":[{"type":"text","text":")" + std::string(text) + R"("}]})");
  }
};

TEST_F(CallAgentsTest, EachAgentHasALineInTheTableAndEachOutputStandsOnceInTheText) {
  add_agent("edge-3");
  funnel.answer = [](const calls::Call& call) {
    EXPECT_EQ(call.request_id, "r-1");
    EXPECT_EQ(call.surface, calls::Surface::mcp_http);
    return call.agent == "edge-3" ? refused("scope", "not yours") : text_of("up 3 days");
  };
  start();
  Asked asked = modern("tools/call", call(R"({"agents":["edge-2","edge-3","edge-1"],"tool":"get_metrics"})"));
  const boost::json::value structured = asked.result().at("structuredContent");
  EXPECT_EQ(structured.at("fan_out").as_string(), "r-1");
  EXPECT_EQ(structured.at("counts").at("success").as_int64(), 2);
  EXPECT_EQ(structured.at("results").at(0).at("agent").as_string(), "edge-2");
  EXPECT_EQ(structured.at("results").at(0).at("output").as_string(), "up 3 days");
  EXPECT_EQ(structured.at("results").at(1).at("outcome").as_string(), "denied");
  EXPECT_EQ(structured.at("results").at(1).at("message").as_string(), "not yours");
  EXPECT_EQ(asked.text(),
            "3 agents\n\ndenied of 1 (scope): edge-3\nnot yours\n\nsuccess of 2: edge-2, edge-1\nup 3 days");
}

TEST_F(CallAgentsTest, ProgressTellsOfEachAgentThatHasEnded) {
  start();
  Asked asked = send_modern(
      modern_text("tools/call", call(R"({"all":true,"tool":"get_metrics"})"), "1", "{}", R"(,"progressToken":"mine")"));
  funnel.at(1)->end(text_of("fine"));
  funnel.at(0)->end(text_of("fine"));
  ASSERT_NE(asked.reply->answer(), "");
  std::vector<std::string> sent = asked.reply->sent_so_far();
  ASSERT_EQ(sent.size(), 2U);
  EXPECT_EQ(parsed(sent[0]).at("params").at("progress").as_int64(), 1);
  EXPECT_EQ(parsed(sent[0]).at("params").at("total").as_int64(), 2);
  EXPECT_EQ(parsed(sent[0]).at("params").at("message").as_string(), "edge-2: success");
}

TEST_F(CallAgentsTest, AClientThatWithdrawsEndsTheCallsThatRun) {
  start();
  Asked asked = modern("tools/call", call(R"({"all":true,"tool":"get_metrics"})"));
  (void)funnel.at(1);
  asked.running->cancel("enough");
  EXPECT_EQ(funnel.at(0)->cancellation(), "enough");
  EXPECT_EQ(funnel.at(1)->cancellation(), "enough");
  for (std::size_t i : {0U, 1U})
    funnel.at(i)->end(refused("cancelled", "withdrawn"));
}

TEST_F(CallAgentsTest, ALargeAnswerIsCutAndSaysSo) {
  funnel.answer = [](const calls::Call&) { return text_of(std::string(50'000, 'x')); };
  start();
  Asked asked = modern("tools/call", call(R"({"all":true,"tool":"get_metrics"})"));
  std::string output(asked.result().at("structuredContent").at("results").at(0).at("output").as_string());
  EXPECT_LT(output.size(), 5'000U);
  EXPECT_NE(output.find("[cut"), std::string::npos);
}

TEST_F(CallAgentsTest, AnOutputThatManyAgentsGiveIsNotRepeatedWithoutBound) {
  for (int i = 3; i <= 100; ++i)
    add_agent("edge-" + std::to_string(i));
  funnel.answer = [](const calls::Call&) { return text_of(std::string(4'000, 'x')); };
  start();
  Asked asked = modern("tools/call", call(R"({"all":true,"tool":"get_metrics"})"));
  const boost::json::value structured = asked.result().at("structuredContent");
  std::size_t with_output = 0;
  for (const boost::json::value& line : structured.at("results").as_array()) {
    bool has_output = line.as_object().contains("output");
    EXPECT_NE(has_output, line.as_object().contains("output_left_out"));
    if (has_output) ++with_output;
  }
  EXPECT_EQ(with_output, (std::size_t{200} << 10) / 4'000);
  EXPECT_NE(asked.text().find("success of 100: "), std::string::npos);
  EXPECT_EQ(asked.text().find("left out"), std::string::npos) << "the text has it once";
}

TEST_F(CallAgentsTest, ADryRunAsksNobody) {
  start();
  Asked asked =
      modern("tools/call", call(R"({"agents":["edge-1","edge-2"],"tool":"get_metrics","dry_run":true})"), scoped());
  const boost::json::value structured = asked.result().at("structuredContent");
  EXPECT_EQ(structured.at("agents").at(0).at("verdict").as_string(), "allow");
  EXPECT_EQ(structured.at("agents").at(1).at("reason").as_string(), "scope");
  EXPECT_EQ(funnel.count(), 0U);
}

TEST_F(CallAgentsTest, WhatIsWrongWithTheWholeIsAResultThatModelsRead) {
  start();
  Asked nobody = modern("tools/call", call(R"({"agents":["web-*"],"tool":"get_metrics"})"));
  EXPECT_TRUE(nobody.result().at("isError").as_bool());
  EXPECT_EQ(nobody.result().at("_meta").at("myrmex-hive/reason").as_string(), "no_target");
  Asked wrong = modern("tools/call", call(R"({"all":true,"tools":"get_metrics"})"));
  EXPECT_EQ(wrong.result().at("_meta").at("myrmex-hive/reason").as_string(), "invalid_arguments");
}

TEST_F(CallAgentsTest, IsNotListedForWhoMayNotCall) {
  start();
  policy::Principal reader{.name = "reader", .role = policy::Role::read_only, .grant = nullptr};
  auto has_it = [](const boost::json::value& result) {
    for (const boost::json::value& tool : result.at("tools").as_array())
      if (tool.at("name").as_string() == "gateway__call_agents") return true;
    return false;
  };
  EXPECT_TRUE(has_it(modern("tools/list").result()));
  EXPECT_TRUE(has_it(modern("tools/list", "{}", scoped()).result()));
  EXPECT_FALSE(has_it(modern("tools/list", "{}", reader).result()));
  Asked called = modern("tools/call", call(R"({"all":true,"tool":"get_metrics"})"), reader);
  EXPECT_EQ(called.result().at("_meta").at("myrmex-hive/reason").as_string(), "role");
}

}  // namespace
}  // namespace hive::mcp_surface::test
