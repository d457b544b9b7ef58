#include "protocol/agent_protocol.h"

#include <gtest/gtest.h>

#include "protocol/tools.h"

namespace hive::protocol {
namespace {

using std::chrono::milliseconds;

TEST(AgentRequestTest, ReadsACallAsTheGatewayWritesIt) {
  std::string line = encode_tools_call("18", "run_command", "{\"name\":\n\"uptime\"}", true, milliseconds(1500));
  EXPECT_EQ(line.find('\n'), std::string::npos);
  auto request = parse_agent_request(line, {});
  ASSERT_TRUE(request.has_value()) << request.error().message;
  EXPECT_EQ(request->id, "\"18\"");
  EXPECT_EQ(request->method, "tools/call");
  auto call = parse_tool_call_params(request->params);
  ASSERT_TRUE(call.has_value()) << call.error().message;
  EXPECT_EQ(call->name, "run_command");
  EXPECT_EQ(call->arguments, "{\"name\": \"uptime\"}");
  EXPECT_EQ(call->progress_token, "\"18\"");
  EXPECT_EQ(call->timeout, milliseconds(1500));
}

TEST(AgentRequestTest, AsksForNoProgressUnlessTheCallerDid) {
  auto request = parse_agent_request(encode_tools_call("1", "x", "{}", false, milliseconds(1)), {});
  EXPECT_TRUE(parse_tool_call_params(request->params)->progress_token.empty());
}

TEST(AgentRequestTest, KeepsIdsAsTheyAre) {
  EXPECT_EQ(parse_agent_request(R"({"id":123456789012345678901,"method":"ping"})", {})->id, "123456789012345678901");
  EXPECT_EQ(parse_agent_request(R"({"id":0,"method":"ping"})", {})->id, "0");
  auto notification = parse_agent_request(R"({"method":"ping"})", {});
  EXPECT_EQ(notification->id, "null");
  EXPECT_TRUE(notification->is_notification);
}

TEST(AgentRequestTest, RefusesWhatIsNotARequest) {
  for (std::string_view bad : {"", "[]", "null", "{}", R"({"method":1})", R"({"id":true,"method":"x"})",
                               R"({"id":[1],"method":"x"})", R"({"method":"a","method":"b"})"}) {
    EXPECT_FALSE(parse_agent_request(bad, {}).has_value()) << bad;
  }
}

TEST(ToolCallParamsTest, TellsMissingArgumentsFromNull) {
  EXPECT_EQ(parse_tool_call_params(R"({"name":"x"})")->arguments, "");
  EXPECT_EQ(parse_tool_call_params(R"({"name":"x","arguments":null})")->arguments, "null");
}

TEST(ToolCallParamsTest, RefusesWrongTypes) {
  for (std::string_view bad : {"", "[]", "\"x\"", R"({"name":1})", R"({"name":"x","_meta":{"progressToken":1.5}})",
                               R"({"name":"x","_meta":{"myrmex-hive/timeout_ms":0}})"}) {
    EXPECT_FALSE(parse_tool_call_params(bad).has_value()) << bad;
  }
}

TEST(AgentMessageTest, ReadsResultsErrorsAndProgress) {
  auto result = parse_agent_message(R"({"jsonrpc":"2.0","result":{"content":[]},"id":"7"})", {});
  ASSERT_TRUE(result.has_value());
  EXPECT_EQ(std::get<AgentResponse>(*result).id, "7");
  EXPECT_EQ(std::get<AgentResponse>(*result).body, R"({"content":[]})");

  auto error = parse_agent_message(R"({"id":7,"error":{"code":-32603,"message":"x"}})", {});
  EXPECT_TRUE(std::get<AgentResponse>(*error).is_error);
  EXPECT_EQ(std::get<AgentResponse>(*error).id, "7");

  auto progress = parse_agent_message(encode_progress("\"7\"", 3, "a\nb"), {});
  ASSERT_TRUE(progress.has_value());
  EXPECT_EQ(std::get<AgentProgress>(*progress).token, "7");
}

TEST(AgentMessageTest, RefusesWhatIsNoAnswer) {
  for (std::string_view bad : {R"({"id":1})", R"({"result":1})", R"({"id":1,"result":1,"error":{}})",
                               R"({"id":1,"error":5})", R"({"method":"tools/call","id":1})", "tru"}) {
    EXPECT_FALSE(parse_agent_message(bad, {}).has_value()) << bad;
  }
}

TEST(VerdictTest, BelievesTheField) {
  Verdict denied = classify_result(
      R"({"content":[{"type":"text","text":"x"}],"isError":true,"_meta":{"myrmex-hive/outcome":"denied","myrmex-hive/reason":"not_allowlisted"}})");
  EXPECT_EQ(denied.outcome, Outcome::denied);
  EXPECT_EQ(denied.reason, "not_allowlisted");
}

TEST(VerdictTest, NeverJudgesAnAgentThatSendsFieldsByItsText) {
  constexpr std::string_view quoted =
      R"({"content":[{"type":"text","text":"Command failed/rejected: x is not in the approved allowlist"}],"isError":false})";
  EXPECT_EQ(classify_result(quoted).outcome, Outcome::success);
}

TEST(VerdictTest, JudgesTheReferencesAgentByTheMarkerAtTheStart) {
  auto of_text = [](std::string_view text) {
    return classify_result(R"({"content":[{"type":"text","text":)" + json::encode_string(text) + "}]}");
  };
  EXPECT_EQ(of_text("ordinary output").outcome, Outcome::success);
  EXPECT_EQ(of_text("log: Command failed/rejected: x is not in the approved allowlist").outcome, Outcome::success);
  EXPECT_EQ(of_text("Command failed/rejected: command 'rm' is not in the approved allowlist\nOutput:\n").outcome,
            Outcome::denied);
  EXPECT_EQ(of_text("Command failed/rejected: arguments 'x' do not match the approved pattern 'y'\nOutput:\n").outcome,
            Outcome::denied);
  EXPECT_EQ(of_text("Command failed/rejected: command failed: exit status 1\nOutput:\nis not in the approved allowlist")
                .outcome,
            Outcome::failure);
  EXPECT_EQ(of_text("Command failed/rejected: command timed out: signal: killed\nOutput:\n").reason, "timed_out");
}

TEST(VerdictTest, ErrorsBeforeAnythingRanAreDenials) {
  EXPECT_EQ(classify_error(R"({"code":-32602,"message":"Invalid service name"})").outcome, Outcome::denied);
  EXPECT_EQ(classify_error(R"({"code":-32601,"message":"Tool not found: x"})").outcome, Outcome::denied);
  EXPECT_EQ(classify_error(R"({"code":-32603,"message":"x"})").outcome, Outcome::failure);
  EXPECT_EQ(classify_error(encode_error_object(-32603, "x", Outcome::cancelled, "cancelled")).outcome,
            Outcome::cancelled);
}

TEST(VerdictTest, AMalformedOutcomeIsAFailureNotASuccess) {
  EXPECT_EQ(classify_result(R"({"_meta":{"myrmex-hive/outcome":"great"}})").outcome, Outcome::failure);
  EXPECT_EQ(classify_result(R"({"isError":true,"_meta":{"myrmex-hive/outcome":"success"}})").outcome, Outcome::failure);
  EXPECT_EQ(classify_result("5").outcome, Outcome::failure);
}

TEST(PingTest, CarriesTheDigestOfTheTools) {
  EXPECT_EQ(tools_digest_of(encode_ping_result("abc")), "abc");
  for (std::string_view without :
       {"{}", "[]", R"({"_meta":5})", R"({"_meta":{}})", R"({"_meta":{"myrmex-hive/tools_sha256":5}})"}) {
    EXPECT_EQ(tools_digest_of(without), "") << without;
  }
}

TEST(ToolsTest, TheListIsValidJsonWithNineToolsInOrder) {
  auto members = json::parse_object(tools_list_result());
  ASSERT_TRUE(members.has_value()) << members.error().message;
  auto tools = json::parse_array(*json::find(*members, "tools"));
  ASSERT_EQ(tools->size(), 9U);
  for (size_t i = 0; i < tools->size(); ++i) {
    auto tool = json::parse_object((*tools)[i]);
    EXPECT_EQ(json::decode_string(*json::find(*tool, "name")), builtin_tools()[i].name);
    EXPECT_TRUE(json::is_object(*json::find(*tool, "inputSchema")));
    EXPECT_TRUE(json::is_object(*json::find(*tool, "outputSchema")));
  }
}

TEST(ToolsTest, OnlyTheToolsThatChangeSomethingAreNotOfTierRead) {
  for (const ToolDescription& tool : builtin_tools()) {
    bool changes = tool.name == "run_command" || tool.name == "service_control";
    EXPECT_EQ(tool.tier, changes ? Tier::write : Tier::read) << tool.name;
  }
}

}  // namespace
}  // namespace hive::protocol
