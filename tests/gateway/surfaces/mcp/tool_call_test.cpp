#include "gateway/surfaces/mcp/core_fixture.h"

namespace hive::mcp_surface::test {
namespace {

class ToolCallTest : public CoreTest {};

constexpr std::string_view metrics_call = R"({"name":"edge-1__get_metrics","arguments":{"a":[1, 2]}})";

TEST_F(ToolCallTest, ACallGoesThroughTheFunnelAsItWasMade) {
  start();
  Asked asked = modern("tools/call", metrics_call, scoped());
  auto running = funnel.at(0);
  EXPECT_EQ(running->call.agent, "edge-1");
  EXPECT_EQ(running->call.tool, "get_metrics");
  EXPECT_EQ(running->call.arguments, R"({"a":[1, 2]})");
  EXPECT_EQ(running->call.principal.name, "token:alice");
  EXPECT_EQ(running->call.surface, calls::Surface::mcp_http);
  EXPECT_EQ(running->call.request_id, "r-1");
  EXPECT_FALSE(running->call.on_progress);
  running->end(success(R"({"content":[{"type":"text","text":"ok"}],"x":1.50})"));
  EXPECT_EQ(asked.text(), "ok");
  EXPECT_NE(asked.reply->answer().find(R"("x":1.50)"), std::string::npos) << "passes through byte for byte";
  EXPECT_EQ(asked.result().at("resultType").as_string(), "complete");
}

TEST_F(ToolCallTest, ALegacyResultHasNothingOfTheModernEra) {
  funnel.answer = [](const calls::Call&) { return success(R"({"content":[],"_meta":{"k":1}})"); };
  start();
  std::string answer = legacy(open(), "tools/call", metrics_call).reply->answer();
  EXPECT_EQ(answer, R"({"jsonrpc":"2.0","id":1,"result":{"content":[],"_meta":{"k":1}}})");
}

TEST_F(ToolCallTest, WhatAGateRefusesIsAResultThatModelsReadWithTheReasonOfEverySurface) {
  funnel.answer = [](const calls::Call&) {
    calls::CallResult result = refused("rate_limited", "try again in 3 s");
    result.retry_after = std::chrono::seconds(3);
    return result;
  };
  start();
  Asked asked = modern("tools/call", metrics_call);
  boost::json::value result = asked.result();
  EXPECT_TRUE(result.at("isError").as_bool());
  EXPECT_EQ(asked.text(), "denied (rate_limited): try again in 3 s");
  EXPECT_EQ(result.at("_meta").at("myrmex-hive/outcome").as_string(), "denied");
  EXPECT_EQ(result.at("_meta").at("myrmex-hive/reason").as_string(), "rate_limited");
  EXPECT_EQ(result.at("_meta").at("myrmex-hive/retry_after_ms").as_int64(), 3000);
}

TEST_F(ToolCallTest, AnErrorOfAnUpstreamKeepsCodeMessageAndData) {
  funnel.answer = [](const calls::Call&) {
    calls::CallResult result;
    result.is_error = true;
    result.body = R"({"code":-32602,"message":"no such thing","data":{"uri":"x"}})";
    return result;
  };
  start();
  Asked asked = modern("tools/call", R"({"name":"other__look"})");
  EXPECT_EQ(asked.code(), -32602);
  EXPECT_EQ(asked.error().at("data").at("uri").as_string(), "x");
  EXPECT_EQ(asked.reply->status(), 200u);
}

TEST_F(ToolCallTest, AnErrorOfAnAgentIsAResultWithIsError) {
  funnel.answer = [](const calls::Call&) {
    calls::CallResult result = refused("invalid_arguments", "lines must be a number");
    result.by_gateway = false;
    return result;
  };
  start();
  EXPECT_TRUE(modern("tools/call", metrics_call).result().at("isError").as_bool());
}

TEST_F(ToolCallTest, ANameThatWouldBeTooLongIsShortenedAndStillFound) {
  std::string id(60, 'e');
  add_agent(id);
  start();
  std::vector<std::string> tools = names(modern("tools/list").result(), "tools");
  auto shortened = std::ranges::find_if(tools, [](const std::string& name) { return name.starts_with("eeee"); });
  ASSERT_NE(shortened, tools.end());
  EXPECT_LE(shortened->size(), 64u);
  Asked asked = modern("tools/call", R"({"name":")" + *shortened + "\"}");
  EXPECT_EQ(funnel.at(0)->call.agent, id);
  EXPECT_EQ(funnel.at(0)->call.tool, "get_metrics");
  funnel.at(0)->end(success(R"({"content":[]})"));
  EXPECT_TRUE(asked.result().is_object());
}

TEST_F(ToolCallTest, ProgressForTheOldestRevisionIsNumbersAlone) {
  start();
  auto session = open("{}", admin(), "2024-11-05");
  Asked asked = legacy(session, "tools/call", R"({"name":"edge-1__get_metrics","_meta":{"progressToken":3}})");
  auto running = funnel.at(0);
  running->progress(R"({"progressToken":"18","progress":1,"message":"one"})");
  EXPECT_EQ(asked.reply->sent(1).at(0), R"({"jsonrpc":"2.0","method":"notifications/progress","params":)"
                                        R"({"progressToken":3,"progress":1}})");
}

TEST_F(ToolCallTest, AnUnknownToolIsAnErrorAndReachesNobody) {
  start();
  for (const char* name : {"nothing", "edge-1__nothing", "edge-9__get_metrics", "__x", "edge-1__", ""}) {
    Asked asked = modern("tools/call", R"({"name":")" + std::string(name) + "\"}");
    EXPECT_EQ(asked.code(), -32602) << name;
    EXPECT_EQ(asked.reply->status(), 200u);
  }
  EXPECT_EQ(funnel.count(), 0u);
}

TEST_F(ToolCallTest, TheToolOfAnAgentThatIsAwayAsksTheFunnelWhichSaysSinceWhen) {
  add_agent("edge-3", false);
  funnel.answer = [](const calls::Call& call) {
    return refused("agent_offline", "agent " + call.agent + " is offline since yesterday");
  };
  start();
  Asked asked = modern("tools/call", R"({"name":"edge-3__run_command"})");
  EXPECT_EQ(asked.text(), "denied (agent_offline): agent edge-3 is offline since yesterday");
  EXPECT_EQ(asked.result().at("_meta").at("myrmex-hive/reason").as_string(), "agent_offline");
}

TEST_F(ToolCallTest, OutOfScopeIsRefusedByTheGatesWhetherTheToolExistsOrNot) {
  funnel.answer = [](const calls::Call&) { return refused("scope", "out of scope"); };
  start();
  std::string real = modern("tools/call", R"({"name":"edge-2__run_command"})", scoped()).reply->answer();
  std::string invented = modern("tools/call", R"({"name":"edge-7__run_command"})", scoped()).reply->answer();
  EXPECT_EQ(real, invented);
  EXPECT_EQ(funnel.count(), 2u);
}

TEST_F(ToolCallTest, ACallThatWaitsForApprovalSaysHowToFetchItsResult) {
  funnel.answer = [](const calls::Call&) {
    calls::CallResult result = refused("approval_required", "waits");
    result.approval_id = std::string(32, 'a');
    result.approval_expires_at = WallTime(std::chrono::seconds(1'800'000'000));
    result.approvals_needed = 2;
    return result;
  };
  start();
  Asked asked = modern("tools/call", R"({"name":"edge-1__run_command","arguments":{"name":"x"}})");
  EXPECT_NE(asked.text().find("gateway__approval_result"), std::string::npos);
  EXPECT_NE(asked.text().find(std::string(32, 'a')), std::string::npos);
  EXPECT_NE(asked.text().find("2 other people"), std::string::npos);
  boost::json::value meta = asked.result().at("_meta");
  EXPECT_EQ(meta.at("myrmex-hive/approval_id").as_string(), std::string(32, 'a'));
  EXPECT_EQ(meta.at("myrmex-hive/approval_expires_at").as_string(), "2027-01-15T08:00:00.000Z");
  EXPECT_TRUE(asked.result().at("isError").as_bool()) << "else clients hold it against the output schema";
}

TEST_F(ToolCallTest, TheResultOfAnApprovedCallIsFetchedAndWaitedFor) {
  start();
  constexpr std::string_view call =
      R"({"name":"gateway__approval_result","arguments":{"id":"abc","wait_seconds":500}})";
  Asked waits = modern("tools/call", call);
  EXPECT_NE(waits.text().find("Still waiting"), std::string::npos);
  EXPECT_EQ(approvals.waited, std::chrono::seconds(50));
  approvals.ending = []() -> Result<std::optional<calls::CallResult>> {
    return success(R"({"content":[{"type":"text","text":"restarted"}]})");
  };
  EXPECT_EQ(modern("tools/call", call).text(), "restarted");
  approvals.ending = []() -> Result<std::optional<calls::CallResult>> {
    return fail(ErrorCode::not_found, "there is no approval abc");
  };
  Asked unknown = modern("tools/call", call);
  EXPECT_TRUE(unknown.result().at("isError").as_bool());
  EXPECT_EQ(unknown.text(), "there is no approval abc");
  EXPECT_TRUE(modern("tools/call", R"({"name":"gateway__approval_result"})").result().at("isError").as_bool());
}

TEST_F(ToolCallTest, TheListOfAgentsShowsWhatIsInReach) {
  add_agent("edge-3", false);
  start();
  Asked all = modern("tools/call", R"({"name":"gateway__list_agents"})");
  EXPECT_EQ(all.text(), "edge-1: online\nedge-2: online\nedge-3: offline since 2027-01-15T08:00:00.000Z");
  EXPECT_EQ(names(all.result().at("structuredContent"), "agents", "id").size(), 3u);
  Asked some = modern("tools/call", R"({"name":"gateway__list_agents"})", scoped());
  EXPECT_EQ(some.text(), "edge-1: online");
}

TEST_F(ToolCallTest, TheListOfAgentsComesInPagesAndParts) {
  add_agent("edge-3", false);
  start();
  auto list = [&](std::string_view arguments) {
    return modern("tools/call", fmt::format(R"({{"name":"gateway__list_agents","arguments":{}}})", arguments));
  };
  boost::json::value first = list(R"({"limit":2})").result().at("structuredContent");
  EXPECT_EQ(names(first, "agents", "id"), (std::vector<std::string>{"edge-1", "edge-2"}));
  EXPECT_EQ(first.at("total").as_int64(), 3);
  std::string cursor(first.at("next_cursor").as_string());
  boost::json::value last = list(R"({"limit":2,"cursor":")" + cursor + "\"}").result().at("structuredContent");
  EXPECT_EQ(names(last, "agents", "id"), std::vector<std::string>{"edge-3"});
  EXPECT_FALSE(last.as_object().contains("next_cursor"));
  EXPECT_EQ(list(R"({"status":"online","id":"*-2"})").text(), "edge-2: online");
  EXPECT_TRUE(list(R"({"limit":0})").result().at("isError").as_bool());
  EXPECT_TRUE(list(R"({"limit":"x"})").result().at("isError").as_bool());
}

TEST_F(ToolCallTest, TheListOfAgentsSaysToPeopleAndProgramsWhichOnesFlap) {
  fleet::Flapping flapping;
  flapping.since = WallTime(std::chrono::seconds(1'800'000'000));
  flapping.contested = true;
  fleet.agents.front().flapping = std::make_shared<const fleet::Flapping>(flapping);
  start();
  boost::json::value listed =
      modern("tools/call", R"({"name":"gateway__list_agents","arguments":{"status":"flapping"}})").result();
  EXPECT_EQ(listed.at("content").at(0).at("text").as_string(),
            "edge-1: online, contested by two machines since 2027-01-15T08:00:00.000Z");
  const boost::json::value& agent = listed.at("structuredContent").at("agents").at(0);
  EXPECT_EQ(agent.at("flapping_since").as_string(), "2027-01-15T08:00:00.000Z");
  EXPECT_TRUE(agent.at("contested").as_bool());
}

TEST_F(ToolCallTest, ACallWaitsForItsAgentAsLongAsTheClientSays) {
  start();
  auto call = [&](std::string_view meta) {
    return modern_text("tools/call", R"({"name":"edge-1__get_metrics","arguments":{}})", "1", "{}", meta);
  };
  (void)send_modern(call(R"(,"myrmex-hive/wait_seconds":30)"));
  EXPECT_EQ(funnel.at(0)->call.wait_for_agent, std::chrono::seconds(30));
  (void)send_modern(call(""));
  EXPECT_EQ(funnel.at(1)->call.wait_for_agent, std::chrono::seconds(0));
  EXPECT_EQ(send_modern(call(R"(,"myrmex-hive/wait_seconds":-1)")).code(), -32602);
}

TEST_F(ToolCallTest, TheGatewaysOwnToolsCountAsCalls) {
  config.rate_limit_per_minute = 1;
  start();
  EXPECT_FALSE(modern("tools/call", R"({"name":"gateway__list_agents"})").result().as_object().contains("isError"));
  boost::json::value second = modern("tools/call", R"({"name":"gateway__list_agents"})").result();
  EXPECT_EQ(second.at("_meta").at("myrmex-hive/reason").as_string(), "rate_limited");
}

TEST_F(ToolCallTest, ProgressCarriesTheClientsTokenAndNeverGoesBack) {
  start();
  Asked asked = send_modern(modern_text("tools/call", metrics_call, "1", "{}", R"(,"progressToken":"mine")"));
  auto running = funnel.at(0);
  ASSERT_TRUE(running->call.on_progress);
  running->progress(R"({"progressToken":"18","progress":1,"message":"one"})");
  running->progress(R"({"progressToken":"18","progress":1,"message":"again"})");
  running->progress(R"({"progressToken":"18","progress":0.5})");
  running->progress(R"({"progressToken":"18","progress":2.5,"total":3})");
  running->progress(R"({"progressToken":"18"})");
  running->end(success(R"({"content":[]})"));
  ASSERT_NE(asked.reply->answer(), "");
  std::vector<std::string> sent = asked.reply->sent_so_far();
  ASSERT_EQ(sent.size(), 2u);
  EXPECT_EQ(sent[0], R"({"jsonrpc":"2.0","method":"notifications/progress","params":)"
                     R"({"progressToken":"mine","progress":1,"message":"one"}})");
  EXPECT_EQ(parsed(sent[1]).at("params").at("progress").as_double(), 2.5);
  EXPECT_FALSE(asked.reply->anything_after_the_end());
}

TEST_F(ToolCallTest, AWithdrawnCallIsWithdrawnFromTheFunnelAndNotAnswered) {
  start();
  Asked asked = modern("tools/call", metrics_call);
  auto running = funnel.at(0);
  ASSERT_NE(asked.running, nullptr);
  asked.running->cancel("the client has gone");
  EXPECT_EQ(running->cancellation(), "the client has gone");
  running->end(success(R"({"content":[]})"));
  Asked barrier = modern("server/discover");
  ASSERT_NE(barrier.reply->answer(), "");
  EXPECT_FALSE(asked.reply->has_answer());
}

TEST_F(ToolCallTest, ASchemaThatMirrorsParametersIsForThoseWhoSeeTheTool) {
  fleet.all_tools.push_back({"edge-2", "deploy", "does it",
                             R"({"name":"deploy","description":"does it","inputSchema":{"type":"object",)"
                             R"("properties":{"region":{"type":"string","x-mcp-header":"Region"}}}})"});
  start();
  EXPECT_TRUE(core->mirroring_schema(admin(), "edge-2__deploy"));
  EXPECT_FALSE(core->mirroring_schema(scoped(), "edge-2__deploy"));
  EXPECT_FALSE(core->mirroring_schema(admin(), "nothing"));
  EXPECT_FALSE(core->mirroring_schema(admin(), "edge-1__get_metrics"));
}

TEST_F(ToolCallTest, AStateForAToolThatAsksNothingIsRefused) {
  start();
  Asked asked = modern("tools/call", R"({"name":"edge-1__get_metrics","requestState":"hive1.x.1.y"})");
  EXPECT_EQ(asked.code(), -32602);
  EXPECT_EQ(funnel.count(), 0u);
}

}  // namespace
}  // namespace hive::mcp_surface::test
