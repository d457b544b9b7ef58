#include "gateway/surfaces/rest/call_request.h"
#include "gateway/surfaces/rest/rest_fixture.h"

namespace hive::rest::test {
namespace {

TEST_F(RestTest, ACallGoesThroughTheFunnelAndItsResultComesBackUntouched) {
  std::string odd = R"({ "content" : [ {"type":"text","text":"\u0041\/"} ],"n":1.0e0 })";
  funnel.answer = [&](const calls::Call&) { return success(odd); };
  std::string response = call(R"({"name":"edge-1__run_command","arguments":{"name" : "uptime"},"timeout_ms":5000})");
  ASSERT_EQ(status_of(response), 200u) << response;
  std::string id = header_of(response, "Myrmex-Request-Id");
  EXPECT_EQ(body_of(response), R"({"jsonrpc":"2.0","id":")" + id + R"(","result":)" + odd + "}");
  EXPECT_EQ(header_of(response, "Myrmex-Outcome"), "success");
  EXPECT_EQ(header_of(response, "Myrmex-Reason"), "");
  EXPECT_EQ(header_of(response, "Content-Type"), "application/json");
  const calls::Call& seen = funnel.at(0)->call;
  EXPECT_EQ(seen.agent, "edge-1");
  EXPECT_EQ(seen.tool, "run_command");
  EXPECT_EQ(seen.arguments, R"({"name" : "uptime"})");
  EXPECT_EQ(seen.timeout, std::chrono::milliseconds(5000));
  EXPECT_EQ(seen.request_id, id);
  EXPECT_EQ(seen.principal.role, policy::Role::operator_);
  EXPECT_FALSE(seen.on_progress);
}

TEST_F(RestTest, MissingAndNullArgumentsAreAnEmptyObject) {
  funnel.answer = [&](const calls::Call&) { return success("{}"); };
  call(R"({"name":"a__t"})");
  call(R"({"name":"a__t","arguments":null})");
  EXPECT_EQ(funnel.at(0)->call.arguments, "{}");
  EXPECT_EQ(funnel.at(1)->call.arguments, "{}");
}

TEST_F(RestTest, WhatTheAgentRefusedOrFailedIsAJsonRpcAnswer) {
  funnel.answer = [&](const calls::Call&) {
    calls::CallResult denied = success(R"({"content":[],"isError":true})");
    denied.outcome = protocol::Outcome::denied;
    denied.reason = "not_allowlisted";
    return denied;
  };
  std::string response = call(R"({"name":"a__t"})");
  EXPECT_EQ(status_of(response), 200u);
  EXPECT_EQ(header_of(response, "Myrmex-Outcome"), "denied");
  EXPECT_EQ(header_of(response, "Myrmex-Reason"), "not_allowlisted");
  EXPECT_NE(body_of(response).find("\"result\":"), std::string_view::npos);
}

TEST_F(RestTest, AnAgentThatIsOfflineIsAJsonRpcError) {
  funnel.answer = [&](const calls::Call&) { return refusal("agent_offline"); };
  std::string response = call(R"({"name":"gone__t"})");
  EXPECT_EQ(status_of(response), 200u);
  EXPECT_EQ(text_at(json_of(response).at("error"), "message"), "because agent_offline");
}

TEST_F(RestTest, WhatTheGatewayRefusedHasItsHttpStatus) {
  for (auto [reason, status] :
       {std::pair("role", 403u), std::pair("scope", 403u), std::pair("approval_required", 403u),
        std::pair("rate_limited", 429u), std::pair("too_many_calls", 429u), std::pair("too_many_waiting", 429u),
        std::pair("credential_expired", 403u), std::pair("audit_unavailable", 503u), std::pair("draining", 503u)}) {
    funnel.answer = [&](const calls::Call&) { return refusal(reason); };
    std::string response = call(R"({"name":"a__t"})");
    EXPECT_EQ(problem_code(response, status), reason);
    EXPECT_EQ(text_at(json_of(response), "detail"), std::string("because ") + reason);
    EXPECT_EQ(text_at(json_of(response), "outcome"), "denied");
    EXPECT_EQ(header_of(response, "Myrmex-Outcome"), "denied");
    EXPECT_EQ(header_of(response, "Myrmex-Reason"), reason);
  }
  funnel.answer = [&](const calls::Call&) { return refusal("timed_out", protocol::Outcome::unknown); };
  EXPECT_EQ(problem_code(call(R"({"name":"a__t"})"), 504), "timed_out");
}

TEST_F(RestTest, AnAgentCannotForgeTheGatewaysRefusal) {
  for (const char* reason :
       {"role", "scope", "approval_required", "rate_limited", "audit_unavailable", "draining", "timed_out"}) {
    funnel.answer = [&](const calls::Call&) {
      calls::CallResult said = refusal(reason);
      said.by_gateway = false;
      return said;
    };
    std::string response = call(R"({"name":"a__t"})");
    EXPECT_EQ(status_of(response), 200u) << reason;
    EXPECT_EQ(text_at(json_of(response).at("error"), "message"), std::string("because ") + reason);
    EXPECT_EQ(header_of(response, "Retry-After"), "");
  }
}

TEST_F(RestTest, ARateLimitedOrDrainedCallSaysWhenToComeBack) {
  funnel.answer = [&](const calls::Call&) {
    calls::CallResult limited = refusal("rate_limited");
    limited.retry_after = std::chrono::milliseconds(7300);
    return limited;
  };
  std::string wait = header_of(call(R"({"name":"a__t"})"), "Retry-After");
  EXPECT_TRUE(wait == "8" || wait == "9") << wait;
  funnel.answer = [&](const calls::Call&) { return refusal("draining"); };
  wait = header_of(call(R"({"name":"a__t"})"), "Retry-After");
  EXPECT_GE(std::stoi(wait), 1);
  EXPECT_LE(std::stoi(wait), 5);
}

TEST_F(RestTest, AReadOnlyCallIsLeftToTheFunnelSoThatItIsRecorded) {
  funnel.answer = [&](const calls::Call&) { return refusal("role"); };
  EXPECT_EQ(problem_code(call(R"({"name":"a__t"})", reader_token), 403), "role");
  ASSERT_EQ(funnel.count(), 1u);
  EXPECT_EQ(funnel.at(0)->call.principal.role, policy::Role::read_only);
}

TEST_F(RestTest, CallsThatMakeNoSenseNeverReachTheFunnel) {
  std::vector<std::string> bodies = {
      "x",
      "null",
      "[]",
      "{}",
      R"({"name":7})",
      R"({"name":""})",
      R"({"name":"a__t","arguments":[]})",
      R"({"name":"a__t","arguments":"{}"})",
      R"({"name":"a__t","name":"a__u"})",
      R"({"name":"a__t"} trailing)",
      R"({"name":"a__t","timeout_ms":-1})",
      R"({"name":"a__t","timeout_ms":0})",
      R"({"name":"a__t","timeout_ms":1.5})",
      R"({"name":"a__t","timeout_ms":"5"})",
      R"({"name":"a__t","timeout_ms":1e400})",
      "\xEF\xBB\xBF{\"name\":\"a__t\"}",
      "{\"\xff\":1}",
      R"({"name":"a__t","arguments":)" + std::string(3000, '[') + std::string(3000, ']') + "}",
      R"({"name":")" + std::string(10'000, 'a') + R"(__t"})",
  };
  std::string nested;
  for (int i = 0; i < 100'000; ++i)
    nested += R"({"a":)";
  bodies.push_back(nested);
  for (const std::string& body : bodies)
    EXPECT_EQ(problem_code(call(body), 400), "invalid_request") << body.substr(0, 80);
  EXPECT_EQ(problem_code(call(""), 400), "invalid_request");
  EXPECT_EQ(funnel.count(), 0u);
}

TEST_F(RestTest, AMisspeltMemberIsNamedWithTheOneThatWasMeant) {
  std::string response = call(R"({"name":"a__t","argumnets":{}})");
  EXPECT_EQ(problem_code(response, 400), "invalid_request");
  EXPECT_EQ(text_at(json_of(response), "detail"), "\"argumnets\": unknown member; did you mean \"arguments\"?");
}

TEST_F(RestTest, NamesThatNoAgentHasAreForTheFunnelToRefuseAndRecord) {
  funnel.answer = [&](const calls::Call&) { return refusal("tool_name"); };
  for (const char* name : {"status", "__", "a__", "__t", "../x__t", "gateway__x"})
    EXPECT_EQ(status_of(call(std::string(R"({"name":")") + name + "\"}")), 200u) << name;
  EXPECT_EQ(funnel.count(), 6u);
}

TEST_F(RestTest, AClientThatGoesAwayCancelsItsCall) {
  start();
  RawClient client(server->port());
  client.send(request_text("POST", "/api/call", operator_token, "", R"({"name":"a__sleep"})"));
  ASSERT_TRUE(eventually([&] { return funnel.count() == 1; }));
  EXPECT_EQ(funnel.at(0)->cancellation(), "");
  client.close();
  EXPECT_TRUE(eventually([&] { return !funnel.at(0)->cancellation().empty(); }));
  funnel.at(0)->end(refusal("cancelled", protocol::Outcome::cancelled));
}

TEST_F(RestTest, AnAnsweredCallIsNotCancelledWhenTheConnectionEnds) {
  funnel.answer = [&](const calls::Call&) { return success("{}"); };
  start();
  {
    RawClient client(server->port());
    client.send(request_text("POST", "/api/call", operator_token, "", R"({"name":"a__t"})"));
    EXPECT_EQ(status_of(client.read_response()), 200u);
  }
  EXPECT_EQ(status_of(get("/healthz")), 200u);
  EXPECT_EQ(funnel.at(0)->cancellation(), "");
}

TEST_F(RestTest, OutputArrivesAsEventsWhileTheToolRuns) {
  start();
  RawClient client(server->port());
  client.send(request_text("POST", "/api/call", operator_token, "Accept: text/event-stream\r\n", R"({"name":"a__t"})"));
  ASSERT_TRUE(eventually([&] { return funnel.count() == 1; }));
  funnel.at(0)->progress(R"({"progress":1,"message":"one"})");
  std::string head = client.read_until("\r\n\r\n");
  EXPECT_EQ(status_of(head), 200u);
  EXPECT_EQ(header_of(head, "Content-Type"), "text/event-stream");
  std::string id = header_of(head, "Myrmex-Request-Id");
  client.read_until("event: progress\ndata: {\"progress\":1,\"message\":\"one\"}\n\n");
  funnel.at(0)->progress("{\"progress\":2,\r\n\"message\":\"two\"}");
  EXPECT_NE(client.read_until("\"two\"}\n\n").find("data: {\"progress\":2,  \"message\""), std::string::npos);
  funnel.at(0)->end(success(R"({"content":[]})"));
  std::string rest = client.read_until("0\r\n\r\n");
  EXPECT_NE(
      rest.find("event: result\ndata: {\"jsonrpc\":\"2.0\",\"id\":\"" + id + "\",\"result\":{\"content\":[]}}\n\n"),
      std::string::npos)
      << rest;
  // The connection is as good as new.
  client.send(request_text("GET", "/healthz", ""));
  EXPECT_EQ(status_of(client.read_response()), 200u);
}

TEST_F(RestTest, AStreamBeginsAfterAMomentOfSilence) {
  start();
  RawClient client(server->port());
  client.send(request_text("POST", "/api/call", operator_token, "Accept: text/event-stream\r\n", R"({"name":"a__t"})"));
  EXPECT_EQ(status_of(client.read_until("\r\n\r\n")), 200u);
  funnel.at(0)->end(refusal("timed_out", protocol::Outcome::unknown));
  EXPECT_NE(client.read_until("0\r\n\r\n").find("\"error\":{\"code\":-32603"), std::string::npos);
}

TEST_F(RestTest, AStreamedResultMayBeLarge) {
  std::string large = "{\"text\":\"" + std::string(std::size_t{3} << 20, 'x') + "\"}";
  start();
  RawClient client(server->port());
  client.send(request_text("POST", "/api/call", operator_token, "Accept: text/event-stream\r\n", R"({"name":"a__t"})"));
  ASSERT_TRUE(eventually([&] { return funnel.count() == 1; }));
  funnel.at(0)->progress("{}");
  funnel.at(0)->end(success(large));
  std::string received = client.read_until("\r\n0\r\n\r\n");
  EXPECT_NE(received.find("\"result\":" + large + "}\n\n\r\n0\r\n\r\n"), std::string::npos);
}

TEST_F(RestTest, ALargeResultForAReaderThatNeverReadsIsGivenUp) {
  start();
  RawClient client(server->port());
  client.shrink_receive_buffer();
  client.send(request_text("POST", "/api/call", operator_token, "Accept: text/event-stream\r\n", R"({"name":"a__t"})"));
  ASSERT_TRUE(eventually([&] { return funnel.count() == 1; }));
  // Output fills the queue until the call is cancelled; its result then has nobody to go to.
  std::string output = "{\"message\":\"" + std::string(100'000, 'x') + "\"}";
  ASSERT_TRUE(eventually([&] {
    funnel.at(0)->progress(output);
    return !funnel.at(0)->cancellation().empty();
  }));
  funnel.at(0)->end(refusal("cancelled", protocol::Outcome::cancelled));
  EXPECT_TRUE(eventually([&] { return server->open_connections() == 0; }));
}

TEST_F(RestTest, AStreamedCallThatIsRefusedAtOnceStillHasItsStatus) {
  funnel.answer = [&](const calls::Call&) { return refusal("rate_limited"); };
  EXPECT_EQ(problem_code(call(R"({"name":"a__t"})", operator_token, "Accept: text/event-stream\r\n"), 429),
            "rate_limited");
}

TEST_F(RestTest, AReaderThatLeavesItsStreamCancelsTheCall) {
  start();
  RawClient client(server->port());
  client.send(request_text("POST", "/api/call", operator_token, "Accept: text/event-stream\r\n", R"({"name":"a__t"})"));
  ASSERT_TRUE(eventually([&] { return funnel.count() == 1; }));
  funnel.at(0)->progress("{}");
  client.read_until("event: progress");
  client.close();
  EXPECT_TRUE(eventually([&] { return !funnel.at(0)->cancellation().empty(); }));
  funnel.at(0)->end(refusal("cancelled", protocol::Outcome::cancelled));
}

TEST(PrefersEventStream, ReadsTheAcceptHeaderByItsWeights) {
  EXPECT_TRUE(prefers_event_stream("text/event-stream"));
  EXPECT_TRUE(prefers_event_stream("Text/Event-Stream; charset=utf-8"));
  EXPECT_TRUE(prefers_event_stream("application/json;q=0.5, text/event-stream;q=0.9"));
  EXPECT_FALSE(prefers_event_stream("application/json;q=0.9, text/event-stream;q=0.1"));
  EXPECT_FALSE(prefers_event_stream("application/json, text/event-stream"));
  EXPECT_FALSE(prefers_event_stream("*/*"));
  EXPECT_FALSE(prefers_event_stream("text/*"));
  EXPECT_FALSE(prefers_event_stream("text/event-stream;q=0"));
  EXPECT_FALSE(prefers_event_stream("text/event-stream;q=x"));
  EXPECT_FALSE(prefers_event_stream(""));
}

}  // namespace
}  // namespace hive::rest::test
