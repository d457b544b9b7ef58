#include "gateway/surfaces/mcp/methods.h"

#include <chrono>

#include "gateway/surfaces/mcp/core_fixture.h"

namespace hive::mcp_surface::test {
namespace {

class MethodsTest : public CoreTest {};

TEST_F(MethodsTest, WhatIsNoRequestIsRefusedAsTheSpecificationSays) {
  start();
  EXPECT_EQ(send_modern("{").code(), -32700);
  EXPECT_EQ(send_modern(R"({"jsonrpc":"1.0","id":1,"method":"tools/list"})").code(), -32600);
  EXPECT_EQ(send_modern(R"({"jsonrpc":"2.0","id":1,"result":{}})").code(), -32600);
  EXPECT_EQ(send_modern(R"({"jsonrpc":"2.0","id":null,"method":"tools/list"})").code(), -32600);
}

TEST_F(MethodsTest, AModernRequestNamesRevisionAndCapabilities) {
  start();
  Asked without = send_modern(R"({"jsonrpc":"2.0","id":7,"method":"tools/list","params":{}})");
  EXPECT_EQ(without.code(), -32602);
  EXPECT_EQ(without.reply->status(), 400u);
  EXPECT_EQ(without.answer().at("id").as_int64(), 7);
  Asked wrong = send_modern(
      R"({"jsonrpc":"2.0","id":"x","method":"nonsense","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":)"
      R"("2099-01-01","io.modelcontextprotocol/clientCapabilities":{}}}})");
  EXPECT_EQ(wrong.code(), -32022);
  EXPECT_EQ(wrong.reply->status(), 400u);
  EXPECT_EQ(wrong.error().at("data").at("requested").as_string(), "2099-01-01");
}

TEST_F(MethodsTest, AMethodThatItsEraDoesNotHaveIsNotFound) {
  start();
  for (const char* method : {"nonsense", "ping", "initialize", "logging/setLevel", "resources/subscribe"}) {
    Asked asked = modern(method);
    EXPECT_EQ(asked.code(), -32601) << method;
    EXPECT_EQ(asked.reply->status(), 404u) << method;
  }
  auto session = open();
  for (const char* method : {"nonsense", "server/discover", "subscriptions/listen"})
    EXPECT_EQ(legacy(session, method).code(), -32601) << method;
}

TEST_F(MethodsTest, EveryMethodAnswersParamsOfEveryWrongShape) {
  start();
  auto session = open();
  for (const Method& method : all_methods()) {
    for (const char* params : {"{}", R"({"name":1,"uri":[],"cursor":{},"level":5,"ref":"x","notifications":3})",
                               R"({"name":"a","arguments":[],"uri":"x:","cursor":"zz","level":"loud","ref":{}})"}) {
      if (method.is_modern) {
        EXPECT_NE(modern(method.name, params).reply->answer(), "") << method.name << params;
      }
      if (method.is_legacy) {
        EXPECT_NE(legacy(session, method.name, params).reply->answer(), "") << method.name << params;
      }
    }
  }
}

TEST_F(MethodsTest, IdsComeBackByteForByte) {
  start();
  for (const char* id : {"0", "-7", "9007199254740993", R"("")", R"("a\u0062\/")"}) {
    std::string answer = send_modern(modern_text("server/discover", "{}", id)).reply->answer();
    EXPECT_NE(answer.find(R"("id":)" + std::string(id) + ","), std::string::npos) << answer;
  }
}

TEST_F(MethodsTest, DiscoverySaysWhatThereIs) {
  start();
  boost::json::value result = modern("server/discover").result();
  EXPECT_EQ(result.at("supportedVersions").at(0).as_string(), "2026-07-28");
  EXPECT_EQ(result.at("resultType").as_string(), "complete");
  EXPECT_TRUE(result.at("capabilities").as_object().contains("completions"));
  EXPECT_EQ(result.at("_meta").at("io.modelcontextprotocol/serverInfo").at("name").as_string(), "myrmex-hive");
  EXPECT_GE(result.at("ttlMs").as_int64(), 0);
}

TEST_F(MethodsTest, ToolsStandInAStableOrderUnderNamesThatNobodyCanTakeFromAnother) {
  upstreams.offered.tools.push_back(FakeUpstreams::item("plain", "edge-1__run_command", "edge-1__run_command", "{}"));
  upstreams.offered.tools.push_back(FakeUpstreams::item("plain", "gateway__list_agents", "gateway__list_agents", "{}"));
  start();
  boost::json::value result = modern("tools/list").result();
  EXPECT_EQ(names(result, "tools"),
            (std::vector<std::string>{"first", "gateway__list_agents", "gateway__call_agents",
                                      "gateway__approval_result", "edge-1__get_metrics", "edge-1__run_command",
                                      "edge-2__get_metrics", "edge-2__run_command", "other__look"}));
  EXPECT_EQ(result.at("cacheScope").as_string(), "private");
  EXPECT_EQ(names(legacy(open(), "tools/list").result(), "tools"), names(result, "tools"));
}

TEST_F(MethodsTest, AToolSaysWhoseItIsAndWhatItMayDo) {
  start();
  boost::json::value tools = modern("tools/list").result().at("tools");
  const boost::json::value& metrics = tools.at(4);
  EXPECT_EQ(metrics.at("title").as_string(), "Host metrics on edge-1");
  EXPECT_TRUE(metrics.at("annotations").at("readOnlyHint").as_bool());
  EXPECT_EQ(metrics.at("_meta").at("myrmex-hive/tier").as_string(), "read");
  const boost::json::value& command = tools.at(5);
  EXPECT_FALSE(command.at("annotations").at("readOnlyHint").as_bool());
  EXPECT_TRUE(command.at("annotations").at("destructiveHint").as_bool());
  EXPECT_TRUE(command.as_object().contains("outputSchema"));
}

TEST_F(MethodsTest, AnOldRevisionSeesNoFieldThatItDoesNotKnow) {
  start();
  boost::json::value tools = legacy(open("{}", admin(), "2024-11-05"), "tools/list").result().at("tools");
  EXPECT_FALSE(tools.at(4).as_object().contains("outputSchema"));
  EXPECT_FALSE(tools.at(4).as_object().contains("title"));
}

TEST_F(MethodsTest, AScopeSeesItsPartAlone) {
  start();
  EXPECT_EQ(names(modern("tools/list", "{}", scoped()).result(), "tools"),
            (std::vector<std::string>{"gateway__list_agents", "gateway__call_agents", "gateway__approval_result",
                                      "edge-1__get_metrics"}));
  EXPECT_EQ(names(modern("prompts/list", "{}", scoped()).result(), "prompts"),
            (std::vector<std::string>{"triage", "service_test"}));
  EXPECT_EQ(names(modern("prompts/list").result(), "prompts"),
            (std::vector<std::string>{"triage", "service_test", "other__greet"}));
  EXPECT_EQ(names(modern("resources/list", "{}", scoped()).result(), "resources", "uri"),
            (std::vector<std::string>{"hive://fleet"}));
  EXPECT_EQ(names(modern("resources/templates/list", "{}", scoped()).result(), "resourceTemplates", "uriTemplate"),
            (std::vector<std::string>{"hive://agents/{id}", "hive://agents/{id}/metrics"}));
  EXPECT_EQ(names(modern("resources/templates/list").result(), "resourceTemplates", "uriTemplate").back(),
            "hive://audit/{seq}");
}

TEST_F(MethodsTest, WithoutApprovalsThereIsNoToolToFetchThem) {
  with_approvals = false;
  start();
  std::vector<std::string> tools = names(modern("tools/list").result(), "tools");
  EXPECT_EQ(std::ranges::count(tools, "gateway__approval_result"), 0);
  EXPECT_EQ(modern("tools/call", R"({"name":"gateway__approval_result","arguments":{"id":"x"}})").code(), -32602);
}

TEST_F(MethodsTest, ToolsThatAnAgentTakesUpLaterAreNoticedWithoutAsking) {
  start();
  std::size_t before = names(modern("tools/list").result(), "tools").size();
  fleet.all_tools.push_back({"edge-1", "get_more", "", R"({"name":"get_more","inputSchema":{"type":"object"}})"});
  EXPECT_EQ(names(modern("tools/list").result(), "tools").size(), before + 1);
}

TEST_F(MethodsTest, TheSameToolTwiceIsListedOnce) {
  fleet.all_tools.push_back(fleet.all_tools.front());
  start();
  std::vector<std::string> tools = names(modern("tools/list").result(), "tools");
  EXPECT_EQ(std::ranges::count(tools, "edge-1__get_metrics"), 1);
}

TEST_F(MethodsTest, FiveHundredAgentsAreListedPageByPageInAMoment) {
  fleet.agents.clear();
  fleet.all_tools.clear();
  for (int i = 0; i < 500; ++i) {
    std::string id = fmt::format("edge-{:03}", i);
    add_agent(id, false);
    fleet.agents.back().online = true;
    for (const protocol::ToolDescription& tool : protocol::builtin_tools()) {
      fleet.all_tools.push_back({id, std::string(tool.name), std::string(tool.description),
                                 fmt::format(R"({{"name":"{}","inputSchema":{},"outputSchema":{}}})", tool.name,
                                             tool.input_schema, tool.output_schema)});
    }
  }
  start();
  std::vector<std::string> all;
  std::string cursor;
  do {
    std::string params = cursor.empty() ? "{}" : R"({"cursor":")" + cursor + "\"}";
    auto before = std::chrono::steady_clock::now();
    Asked page = modern("tools/list", params);
    ASSERT_NE(page.reply->answer(), "");
    auto took = std::chrono::steady_clock::now() - before;
    if (cursor.empty()) {
      RecordProperty("first_page_us",
                     fmt::format("{}", std::chrono::duration_cast<std::chrono::microseconds>(took).count()));
    }
    boost::json::value result = page.result();
    for (std::string& name : names(result, "tools"))
      all.push_back(std::move(name));
    const auto* next = result.as_object().if_contains("nextCursor");
    cursor = next == nullptr ? "" : std::string(next->as_string());
  } while (!cursor.empty() && all.size() < 6000);
  EXPECT_EQ(all.size(), 500u * 9 + 5);
  std::ranges::sort(all);
  EXPECT_EQ(std::ranges::adjacent_find(all), all.end());
  EXPECT_EQ(funnel.count(), 0u);
}

TEST_F(MethodsTest, APageGoesOnWhereTheLastOneEndedThoughAgentsHaveGone) {
  fleet.agents.clear();
  fleet.all_tools.clear();
  for (int i = 0; i < 150; ++i)
    add_agent(fmt::format("edge-{:03}", i));
  start();
  boost::json::value first = modern("tools/list").result();
  std::string cursor(first.at("nextCursor").as_string());
  std::string last = names(first, "tools").back();
  std::erase_if(fleet.all_tools,
                [&](const rest::test::AgentTool& tool) { return last.starts_with(tool.agent + "__"); });
  core->fleet_changed();
  Asked second = modern("tools/list", R"({"cursor":")" + cursor + "\"}");
  EXPECT_FALSE(names(second.result(), "tools").empty());
  EXPECT_EQ(modern("tools/list", R"({"cursor":"00ff"})").code(), -32602);
  EXPECT_EQ(modern("tools/list", R"({"cursor":""})").code(), -32602);
}

TEST_F(MethodsTest, CompletionsStayWithinReach) {
  start();
  auto values = [&](std::string_view params, policy::Principal who) {
    boost::json::value result = modern("completion/complete", params, std::move(who)).result();
    std::vector<std::string> all;
    for (const boost::json::value& value : result.at("completion").at("values").as_array())
      all.emplace_back(value.as_string());
    return all;
  };
  constexpr std::string_view agent =
      R"({"ref":{"type":"ref/prompt","name":"triage"},"argument":{"name":"agent","value":"edge"}})";
  EXPECT_EQ(values(agent, admin()), (std::vector<std::string>{"edge-1", "edge-2"}));
  EXPECT_EQ(values(agent, scoped()), (std::vector<std::string>{"edge-1"}));
  EXPECT_EQ(values(R"({"ref":{"type":"ref/resource","uri":"hive://agents/{id}"},"argument":{"name":"id","value":""}})",
                   scoped()),
            (std::vector<std::string>{"edge-1"}));
  EXPECT_EQ(values(R"({"ref":{"type":"ref/prompt","name":"service_test"},"argument":{"name":"service","value":"ng"},)"
                   R"("context":{"arguments":{"agent":"edge-1"}}})",
                   admin()),
            (std::vector<std::string>{"nginx.service"}));
  EXPECT_EQ(
      modern("completion/complete",
             R"({"ref":{"type":"ref/prompt","name":"other__greet"},"argument":{"name":"a","value":""}})", scoped())
          .code(),
      -32602);
}

TEST_F(MethodsTest, ACompletionOfAnUpstreamIsAskedUnderItsOwnName) {
  start();
  Asked asked = modern("completion/complete",
                       R"({"ref":{"type":"ref/prompt","name":"other__greet"},"argument":{"name":"a","value":"x"}})");
  auto running = funnel.at(0);
  EXPECT_EQ(running->call.target, calls::TargetKind::upstream);
  EXPECT_EQ(running->call.agent, "other");
  EXPECT_EQ(running->call.tool, "completion/complete");
  EXPECT_EQ(running->call.params,
            R"({"ref":{"type":"ref/prompt","name":"greet"},"argument":{"name":"a","value":"x"}})");
  running->end(success(R"({"completion":{"values":["x"]}})"));
  EXPECT_EQ(asked.result().at("completion").at("values").at(0).as_string(), "x");
}

TEST_F(MethodsTest, PromptsNameTheToolsOfTheirAgent) {
  start();
  boost::json::value result = modern("prompts/get", R"({"name":"triage","arguments":{"agent":"edge-1"}})").result();
  std::string text(result.at("messages").at(0).at("content").at("text").as_string());
  EXPECT_NE(text.find("edge-1__get_metrics"), std::string::npos);
  EXPECT_EQ(modern("prompts/get", R"({"name":"triage"})").code(), -32602);
  EXPECT_EQ(modern("prompts/get", R"({"name":"triage","arguments":{"agent":"edge-2"}})", scoped()).code(), -32602);
  EXPECT_EQ(modern("prompts/get", R"({"name":"service_test","arguments":{"agent":"edge-1"}})").code(), -32602);
  EXPECT_EQ(modern("prompts/get", R"({"name":"nothing"})").code(), -32602);
}

TEST_F(MethodsTest, AfterTheEndNothingBegins) {
  start();
  core->close();
  EXPECT_EQ(modern("tools/list").reply->status(), 503u);
  EXPECT_EQ(core->open_session(client(admin())), nullptr);
}

}  // namespace
}  // namespace hive::mcp_surface::test
