#include <boost/json/serialize.hpp>

#include "gateway/surfaces/rest/fan_out_request.h"
#include "gateway/surfaces/rest/rest_fixture.h"

namespace hive::rest::test {
namespace {

class FanOutRestTest : public RestTest {
 protected:
  FanOutRestTest() {
    for (const char* id : {"edge-1", "edge-2"}) {
      fleet::AgentStatus agent;
      agent.id = id;
      agent.online = true;
      fleet.agents.push_back(agent);
    }
    fleet::AgentStatus away;
    away.id = "edge-3";
    fleet.agents.push_back(away);
  }

  std::string fan_out(std::string_view body, std::string_view token = operator_token, std::string_view headers = "") {
    return send("POST", "/api/fan-out", token, headers, body);
  }
  static std::string text_result(std::string_view text) {
    return R"({"content":[{"type":"text","text":")" + std::string(text) + R"("}]})";
  }
  calls::CallResult answer_of(const calls::Call& call) {
    return call.agent == "edge-2" ? refusal("agent_offline") : success(text_result(call.agent));
  }
};

TEST_F(FanOutRestTest, ThePlainFormHasEveryAgentInOrderAndTheCounts) {
  funnel.answer = [&](const calls::Call& call) { return answer_of(call); };
  std::string response = fan_out(R"({"agents":["edge-2","edge-1"],"tool":"get_metrics","arguments":{"a":1}})");
  ASSERT_EQ(status_of(response), 200U) << response;
  std::string id = header_of(response, "Myrmex-Request-Id");
  boost::json::value body = json_of(response);
  EXPECT_EQ(text_at(body, "fan_out"), id);
  EXPECT_EQ(body.at("agents"), 2);
  EXPECT_EQ(body.at("counts").at("success"), 1);
  EXPECT_EQ(body.at("counts").at("denied"), 1);
  const auto& results = body.at("results").as_array();
  ASSERT_EQ(results.size(), 2U);
  EXPECT_EQ(text_at(results[0], "agent"), "edge-2");
  EXPECT_EQ(text_at(results[0], "outcome"), "denied");
  EXPECT_EQ(text_at(results[0], "reason"), "agent_offline");
  EXPECT_EQ(text_at(results[0], "message"), "because agent_offline");
  EXPECT_EQ(text_at(results[1], "agent"), "edge-1");
  EXPECT_EQ(boost::json::serialize(results[1].at("result")), text_result("edge-1"));
  EXPECT_EQ(funnel.at(0)->call.request_id, id);
  EXPECT_EQ(funnel.at(0)->call.tool, "get_metrics");
  EXPECT_EQ(funnel.at(0)->call.arguments, R"({"a":1})");
}

TEST_F(FanOutRestTest, OptionsReachTheCalls) {
  funnel.answer = [&](const calls::Call& call) { return answer_of(call); };
  std::string response = fan_out(
      R"({"all":true,"offline":true,"tool":"get_metrics","timeout_ms":5000,"wait_seconds":7,"deadline_ms":60000,"concurrency":1,)"
      R"("stop_after_errors":1})");
  ASSERT_EQ(status_of(response), 200U) << response;
  boost::json::value body = json_of(response);
  EXPECT_EQ(text_at(body, "stopped_by"), "fan_out_stopped");
  EXPECT_EQ(body.at("not_started"), 1);
  EXPECT_EQ(text_at(body.at("results").at(2), "outcome"), "cancelled");
  EXPECT_EQ(funnel.count(), 2U);
  EXPECT_EQ(funnel.at(0)->call.timeout, std::chrono::milliseconds(5000));
  EXPECT_EQ(funnel.at(0)->call.wait_for_agent, std::chrono::seconds(7));
}

TEST_F(FanOutRestTest, AStreamHasEachResultAsItComesAndEndsWithTheCounts) {
  start();
  RawClient client(server->port());
  client.send(request_text("POST", "/api/fan-out", operator_token, "Accept: text/event-stream\r\n",
                           R"({"all":true,"tool":"get_metrics"})"));
  std::string head = client.read_until("\r\n\r\n");
  ASSERT_EQ(status_of(head), 200U) << head;
  EXPECT_EQ(header_of(head, "Content-Type"), "text/event-stream");
  EXPECT_NE(client.read_until("\n\n").find(R"("agents":2,"left_out":1})"), std::string::npos);
  ASSERT_TRUE(eventually([&] { return funnel.count() == 2; }));
  funnel.at(1)->end(success(text_result("second first")));
  std::string event = client.read_until("\n\n");
  EXPECT_NE(event.find("event: result\ndata: {\"agent\":\"edge-2\",\"outcome\":\"success\""), std::string::npos)
      << event;
  funnel.at(0)->end(refusal("rate_limited"));
  event = client.read_until("\n\n");
  EXPECT_NE(event.find(R"("reason":"rate_limited")"), std::string::npos) << event;
  event = client.read_until("\n\n");
  EXPECT_NE(event.find("event: end\n"), std::string::npos) << event;
  EXPECT_NE(event.find(R"("counts":{"success":1,"denied":1,"failure":0)"), std::string::npos) << event;
}

TEST_F(FanOutRestTest, AClientThatGoesAwayEndsTheCallsThatRun) {
  start();
  {
    RawClient client(server->port());
    client.send(request_text("POST", "/api/fan-out", operator_token, "Accept: text/event-stream\r\n",
                             R"({"all":true,"tool":"get_metrics"})"));
    ASSERT_TRUE(eventually([&] { return funnel.count() == 2; }));
  }
  EXPECT_TRUE(eventually([&] { return !funnel.at(0)->cancellation().empty(); }));
  EXPECT_TRUE(eventually([&] { return !funnel.at(1)->cancellation().empty(); }));
  for (std::size_t i : {0U, 1U})
    funnel.at(i)->end(refusal("cancelled", protocol::Outcome::cancelled));
}

TEST_F(FanOutRestTest, AReaderThatStopsForAWhileLosesNothingAndHoldsBackWhatHasNotBegun) {
  fleet.agents.clear();
  constexpr std::size_t agents = 40;
  for (std::size_t i = 0; i < agents; ++i) {
    fleet::AgentStatus agent;
    agent.id = fmt::format("edge-{:02}", i);
    agent.online = true;
    fleet.agents.push_back(agent);
  }
  // More than kernel and server take for a client that does not read.
  std::string large(std::size_t{1} << 20, 'x');
  funnel.answer = [&](const calls::Call&) { return success(text_result(large)); };
  start();
  RawClient client(server->port());
  client.send(request_text("POST", "/api/fan-out", operator_token, "Accept: text/event-stream\r\n",
                           R"({"all":true,"tool":"get_metrics","concurrency":2})"));
  ASSERT_TRUE(eventually([&] { return funnel.count() >= 2; }));
  std::size_t results = 0;
  for (std::string event; event.find("event: end\n") == std::string::npos;) {
    event = client.read_until("\n\n");
    ASSERT_FALSE(event.empty()) << "the stream was cut after " << results << " results";
    if (event.find("event: result\n") != std::string::npos) ++results;
  }
  EXPECT_EQ(results, agents);
}

TEST_F(FanOutRestTest, AnApprovalIsReportedWithItsId) {
  funnel.answer = [&](const calls::Call&) {
    calls::CallResult waits = refusal("approval_required");
    waits.approval_id = std::string(32, 'a');
    waits.approvals_needed = 1;
    return waits;
  };
  boost::json::value body = json_of(fan_out(R"({"agents":["edge-1"],"tool":"run_command"})"));
  EXPECT_EQ(text_at(body.at("results").at(0), "outcome"), "approval_required");
  EXPECT_EQ(text_at(body.at("results").at(0), "approval_id"), std::string(32, 'a'));
  EXPECT_EQ(body.at("counts").at("approval_required"), 1);
}

TEST_F(FanOutRestTest, ADryRunNamesTheAgentsAndWhatThePolicySaysAndRunsNothing) {
  std::string response =
      fan_out(R"({"agents":["edge-1","edge-2"],"tool":"get_metrics","dry_run":true})", scoped_operator_token);
  ASSERT_EQ(status_of(response), 200U) << response;
  boost::json::value body = json_of(response);
  EXPECT_EQ(text_at(body, "tier"), "read");
  EXPECT_EQ(text_at(body.at("agents").at(0), "verdict"), "allow");
  EXPECT_EQ(text_at(body.at("agents").at(1), "verdict"), "deny");
  EXPECT_EQ(text_at(body.at("agents").at(1), "reason"), "scope");
  EXPECT_EQ(funnel.count(), 0U);
}

TEST_F(FanOutRestTest, RefusalsOfTheWholeHaveAStatusAndRunNothing) {
  EXPECT_EQ(problem_code(fan_out(R"({"all":true,"tool":"t"})", reader_token), 403), "role");
  EXPECT_EQ(problem_code(fan_out(R"({"tool":"t"})"), 422), "no_target");
  EXPECT_EQ(problem_code(fan_out(R"({"agents":["web-*"],"tool":"t"})"), 422), "no_target");
  EXPECT_EQ(problem_code(fan_out(R"({"all":true,"agents":["a"],"tool":"t"})"), 400), "invalid_targets");
  EXPECT_EQ(problem_code(fan_out(R"({"all":true,"tool":"t","deadline_ms":86400001})"), 400), "invalid_request");
  EXPECT_EQ(problem_code(fan_out(R"({"all":true})"), 400), "invalid_request");
  std::string large = R"({"all":true,"tool":"t","arguments":{"x":")" + std::string(70'000, 'x') + R"("}})";
  EXPECT_EQ(problem_code(fan_out(large), 413), "arguments_too_large");
  EXPECT_EQ(funnel.count(), 0U);
}

TEST(FanOutRequest, IsStrict) {
  auto message = [](std::string_view body) {
    auto parsed = parse_fan_out_request(body);
    return parsed ? std::string() : parsed.error().message;
  };
  EXPECT_TRUE(message(R"({"tool":"t","agent":["a"]})").ends_with(R"("agent": unknown member; did you mean "agents"?)"));
  EXPECT_EQ(message(R"({"tool":"t","agents":"a"})"), "agents: must be a list of strings");
  EXPECT_EQ(message(R"({"tool":"t","all":1})"), "all: must be true or false");
  EXPECT_EQ(message(R"({"tool":"t","concurrency":0})"), "concurrency: must be a whole number from 1 to 256");
  EXPECT_EQ(message(R"({"tool":"t","arguments":[]})"), "arguments: must be an object");
  EXPECT_EQ(message(R"({"tool":"t","all":null,"arguments":null})"), "");
  auto schema = json::parse(fan_out_schema);
  ASSERT_TRUE(schema) << schema.error().message;
}

}  // namespace
}  // namespace hive::rest::test
