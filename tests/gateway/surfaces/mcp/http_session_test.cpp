// MCP of 2025-03-26 to 2025-11-25 over HTTP: sessions, streams that outlive their connections.

#include "gateway/surfaces/mcp/http_fixture.h"

namespace hive::mcp_surface::test {
namespace {

class HttpSessionTest : public HttpTest {
 protected:
  RawClient listen(const std::string& session, const std::string& more = "") {
    RawClient client = connect();
    client.send(request_text("GET", "/mcp", session + more));
    return client;
  }
  std::shared_ptr<FakeSession> core_session(std::size_t index = 0) { return core->sessions().at(index); }
};

TEST_F(HttpSessionTest, ASessionBeginsWithInitializeAndEndsWithDelete) {
  std::string session = begin_session();
  EXPECT_EQ(endpoint->session_count(), 1u);
  core->legacy.answer = [](Received& request) { request.finish(R"({"tools":[]})"); };
  std::string response = post(session, R"({"jsonrpc":"2.0","id":"7","method":"tools/list"})");
  EXPECT_EQ(status_of(response), 200u);
  EXPECT_EQ(header_of(response, "Content-Type"), "application/json");
  EXPECT_EQ(body_of(response), R"({"jsonrpc":"2.0","id":"7","result":{"tools":[]}})");
  EXPECT_EQ(status_of(send("DELETE", "/mcp", session)), 204u);
  EXPECT_TRUE(core_session()->is_closed);
  EXPECT_EQ(endpoint->session_count(), 0u);
  EXPECT_EQ(status_of(post(session, call_body())), 404u);
  EXPECT_EQ(status_of(send("DELETE", "/mcp", session)), 404u);
}

TEST_F(HttpSessionTest, ARefusedInitializeLeavesNoSession) {
  std::string response = post("", R"({"jsonrpc":"2.0","id":0,"method":"initialize","params":{"x":"refuse-me"}})");
  EXPECT_EQ(status_of(response), 400u);
  EXPECT_EQ(header_of(response, "Mcp-Session-Id"), "");
  EXPECT_TRUE(contains(body_of(response), "-32602"));
  EXPECT_EQ(endpoint->session_count(), 0u);
  EXPECT_TRUE(core_session()->is_closed);
}

TEST_F(HttpSessionTest, InitializeWithinASessionIsRefused) {
  std::string response = post(begin_session(), R"({"jsonrpc":"2.0","id":3,"method":"initialize","params":{}})");
  EXPECT_EQ(status_of(response), 400u);
  EXPECT_TRUE(contains(body_of(response), "\"id\":3"));
}

TEST_F(HttpSessionTest, TheSessionIsNamedOrTheRequestRefused) {
  std::string session = begin_session();
  for (const char* method : {"POST", "GET", "DELETE"}) {
    std::string body = std::string(method) == "POST" ? call_body() : "";
    EXPECT_EQ(status_of(send(method, "/mcp", "", body)), 400u) << method;
    EXPECT_EQ(status_of(send(method, "/mcp", session + session, body)), 400u) << method;
    EXPECT_EQ(status_of(send(method, "/mcp", "Mcp-Session-Id: 0123\r\n", body)), 404u) << method;
    std::string response = send(method, "/mcp", session + "MCP-Protocol-Version: 2024-01-01\r\n", body);
    EXPECT_EQ(status_of(response), 400u) << method << response;
  }
  EXPECT_TRUE(refused().empty());
  EXPECT_TRUE(core->legacy.requests().empty());
}

TEST_F(HttpSessionTest, ASessionIsItsOwnersAlone) {
  std::string session = begin_session("2025-11-25", "alice");
  std::string stolen = session;
  stolen.replace(stolen.find("alice"), 5, "mallory");
  EXPECT_EQ(status_of(post(stolen, call_body())), 404u);
  EXPECT_EQ(status_of(send("GET", "/mcp", stolen)), 404u);
  EXPECT_EQ(status_of(send("DELETE", "/mcp", stolen)), 404u);
  EXPECT_EQ(refused(), (std::vector<std::string>(3, "foreign_session")));
  EXPECT_EQ(endpoint->session_count(), 1u);
}

TEST_F(HttpSessionTest, AnUnusedSessionExpires) {
  std::string session = begin_session();
  core->legacy.answer = [](Received& request) { request.finish(); };
  clock.advance(std::chrono::minutes(14));
  EXPECT_EQ(status_of(post(session, call_body())), 200u);
  clock.advance(std::chrono::minutes(14));
  EXPECT_EQ(status_of(post(session, call_body())), 200u);
  clock.advance(std::chrono::minutes(15));
  EXPECT_EQ(status_of(post(session, call_body())), 404u);
  EXPECT_TRUE(core_session()->is_closed);
}

TEST_F(HttpSessionTest, ASessionThatListensOrWorksDoesNotExpire) {
  std::string listening = begin_session();
  std::string working = begin_session();
  RawClient client = listen(listening);
  client.read_until("data: \n\n");
  RawClient caller = connect();
  caller.send(request_text("POST", "/mcp", working, call_body()));
  ReceivedPointer call = received(core->legacy);
  clock.advance(std::chrono::hours(1));
  core->legacy.answer = [](Received& request) { request.finish(); };
  EXPECT_EQ(status_of(post(listening, call_body())), 200u);
  EXPECT_EQ(status_of(post(working, call_body("2"))), 200u);
  call->finish();
}

TEST_F(HttpSessionTest, AnOwnerWithTooManySessionsLosesTheLongestUnused) {
  options.sessions.sessions_per_owner = 2;
  std::string first = begin_session();
  clock.advance(std::chrono::seconds(1));
  std::string second = begin_session();
  std::string others = begin_session("2025-11-25", "bob");
  clock.advance(std::chrono::seconds(1));
  core->legacy.answer = [](Received& request) { request.finish(); };
  EXPECT_EQ(status_of(post(first, call_body())), 200u);
  begin_session();
  EXPECT_EQ(status_of(post(first, call_body())), 200u);
  EXPECT_EQ(status_of(post(second, call_body())), 404u);
  EXPECT_EQ(status_of(post(others, call_body())), 200u);
}

TEST_F(HttpSessionTest, ASessionThatWasLeftBehindMakesRoomWhereTheCoreHasNoneLeft) {
  core->max_sessions = 1;
  std::string first = begin_session();
  std::string second = begin_session();
  EXPECT_EQ(status_of(post(first, call_body())), 404u);
  RawClient listener = listen(second);
  listener.read_until("data: \n\n");
  std::string response = post("", R"({"jsonrpc":"2.0","id":5,"method":"initialize","params":{}})");
  EXPECT_EQ(status_of(response), 503u) << response;
  EXPECT_EQ(endpoint->session_count(), 1u);
}

TEST_F(HttpSessionTest, WithoutRoomForASessionInitializeIsRefused) {
  options.sessions.sessions = 1;
  begin_session();
  std::string response = post("X-User: bob\r\n", R"({"jsonrpc":"2.0","id":5,"method":"initialize","params":{}})");
  EXPECT_EQ(status_of(response), 503u) << response;
  EXPECT_TRUE(contains(body_of(response), "\"id\":5")) << response;
}

TEST_F(HttpSessionTest, NotificationsAndResponsesAreAccepted) {
  std::string session = begin_session();
  for (const char* body :
       {R"({"jsonrpc":"2.0","method":"notifications/initialized"})", R"({"jsonrpc":"2.0","id":9,"result":{}})"}) {
    std::string response = post(session, body);
    EXPECT_EQ(status_of(response), 202u);
    EXPECT_EQ(body_of(response), "");
  }
  EXPECT_EQ(core->legacy.accepted().size(), 2u);
  EXPECT_EQ(status_of(post(session, "{}")), 400u);
  EXPECT_EQ(status_of(post(session, "nonsense")), 400u);
}

TEST_F(HttpSessionTest, BatchesBelongTo20250326Alone) {
  std::string body =
      "[" + call_body("1") + R"(,{"jsonrpc":"2.0","method":"notifications/initialized"},)" + call_body("2") + "]";
  EXPECT_EQ(status_of(post(begin_session("2025-06-18"), body)), 400u);
  core->legacy.answer = [](Received& request) { request.finish(); };
  std::string session = begin_session("2025-03-26");
  std::string response = post(session, body);
  EXPECT_EQ(body_of(response), R"([{"jsonrpc":"2.0","id":1,"result":{}},{"jsonrpc":"2.0","id":2,"result":{}}])");
  EXPECT_EQ(core->legacy.accepted().size(), 1u);
  EXPECT_EQ(status_of(post(session, R"([{"jsonrpc":"2.0","method":"notifications/initialized"}])")), 202u);
  EXPECT_EQ(status_of(post(session, "[]")), 400u);
  EXPECT_EQ(status_of(post(session, R"([{"jsonrpc":"2.0","id":1,"method":"initialize"}])")), 400u);
}

TEST_F(HttpSessionTest, AnswersOfABatchThatPrecedeItsStreamAreInTheStream) {
  core->legacy.answer = [](Received& request) {
    if (request.id == "2") request.progress(1);
    request.finish();
  };
  RawClient client = connect();
  client.send(
      request_text("POST", "/mcp", begin_session("2025-03-26"), "[" + call_body("1") + "," + call_body("2") + "]"));
  std::string stream = client.read_until("0\r\n\r\n");
  EXPECT_TRUE(contains(stream, R"("id":1,"result")")) << stream;
  EXPECT_TRUE(contains(stream, R"("progress":1)"));
  EXPECT_TRUE(contains(stream, R"("id":2,"result")"));
}

TEST_F(HttpSessionTest, AWithdrawnRequestGetsNoAnswer) {
  core->legacy.answer = [](Received& request) { request.reply = nullptr; };
  std::string response = post(begin_session(), call_body());
  EXPECT_EQ(status_of(response), 202u);
  EXPECT_EQ(body_of(response), "");
}

TEST_F(HttpSessionTest, OneSessionHasABoundedNumberOfRequestsInFlight) {
  options.session.max_requests = 1;
  std::string session = begin_session();
  RawClient caller = connect();
  caller.send(request_text("POST", "/mcp", session, call_body()));
  ReceivedPointer call = received(core->legacy);
  EXPECT_EQ(status_of(post(session, call_body("2"))), 429u);
  call->finish();
  EXPECT_EQ(status_of(caller.read_response()), 200u);
  core->legacy.answer = [](Received& request) { request.finish(); };
  EXPECT_EQ(status_of(post(session, call_body("2"))), 200u);
}

TEST_F(HttpSessionTest, AStreamBeginsWithAnEventToComeBackTo) {
  core->legacy.answer = [](Received& request) {
    request.progress(1);
    request.finish();
  };
  for (const char* revision : {"2025-11-25", "2025-06-18"}) {
    RawClient client = connect();
    client.send(request_text("POST", "/mcp", begin_session(revision), call_body()));
    std::string stream = client.read_until("0\r\n\r\n");
    EXPECT_EQ(contains(stream, "\ndata: \n\n"), revision == std::string("2025-11-25")) << stream;
    EXPECT_EQ(count(stream, "event: message\ndata: {"), 2u) << stream;
    EXPECT_TRUE(contains(stream, "_2\nevent: message\n")) << stream;
  }
}

TEST_F(HttpSessionTest, AClientThatGoesAwayHasNotWithdrawnItsRequestAndGetsTheRestLater) {
  std::string session = begin_session();
  RawClient client = connect();
  client.send(request_text("POST", "/mcp", session, call_body("42")));
  ReceivedPointer call = received(core->legacy);
  call->progress(1);
  std::string last = last_event_id(client.read_until("\"progress\":1}}\n\n"));
  client.close();
  call->progress(2);
  EXPECT_FALSE(call->running->is_cancelled);
  RawClient again = listen(session, "Last-Event-ID: " + last + "\r\n");
  std::string rest = again.read_until("\"progress\":2}}\n\n");
  EXPECT_FALSE(contains(rest, "\"progress\":1"));
  call->finish();
  rest = again.read_until("0\r\n\r\n");
  EXPECT_TRUE(contains(rest, "\"id\":42")) << rest;
  // And once more, now that all of it lies in the past.
  RawClient third = listen(session, "Last-Event-ID: " + last + "\r\n");
  rest = third.read_until("0\r\n\r\n");
  EXPECT_EQ(count(rest, "event: message"), 2u) << rest;
}

TEST_F(HttpSessionTest, AnInterruptedStreamIsComeBackTo) {
  std::string session = begin_session();
  RawClient client = connect();
  client.send(request_text("POST", "/mcp", session, call_body("42")));
  ReceivedPointer call = received(core->legacy);
  call->reply->interrupt();
  std::string stream = client.read_until("0\r\n\r\n");
  EXPECT_TRUE(contains(stream, "retry: ")) << stream;
  EXPECT_FALSE(contains(stream, "event: message"));
  std::string first = last_event_id(stream);
  ASSERT_NE(first, "");
  call->finish();
  std::string rest = listen(session, "Last-Event-ID: " + first + "\r\n").read_until("0\r\n\r\n");
  EXPECT_TRUE(contains(rest, "\"id\":42")) << rest;
}

TEST_F(HttpSessionTest, AnInterruptionIsIgnoredWhereTheClientCouldNotComeBack) {
  core->legacy.answer = [](Received& request) {
    request.reply->interrupt();
    request.finish();
  };
  EXPECT_EQ(status_of(post(begin_session("2025-06-18"), call_body())), 200u);
  EXPECT_EQ(status_of(post(begin_session() + "Accept: application/json\r\n", call_body())), 200u);
}

TEST_F(HttpSessionTest, AnEventOfAnotherSessionIsNothing) {
  core->legacy.answer = [](Received& request) {
    request.progress(1);
    request.finish();
  };
  std::string mine = begin_session();
  std::string other = begin_session("2025-11-25", "bob");
  RawClient client = connect();
  client.send(request_text("POST", "/mcp", mine, call_body()));
  std::string last = last_event_id(client.read_until("0\r\n\r\n"));
  for (const std::string& id : {last, std::string("x"), std::string("_"), std::string("_1"), last + "9"}) {
    std::string response = send("GET", "/mcp", other + "Last-Event-ID: " + id + "\r\n");
    EXPECT_EQ(status_of(response), 400u) << id << response;
  }
  EXPECT_EQ(refused(), std::vector<std::string>(5, "unknown_event"));
  EXPECT_EQ(status_of(send("GET", "/mcp", mine + "Last-Event-ID: " + last + "9\r\n")), 400u);
}

TEST_F(HttpSessionTest, AnAnswerThatIsTooLargeToKeepEndsTheStreamWithAnErrorInstead) {
  std::string session = begin_session();
  RawClient client = connect();
  client.send(request_text("POST", "/mcp", session, call_body("42")));
  ReceivedPointer call = received(core->legacy);
  call->progress(1);
  std::string last = last_event_id(client.read_until("\"progress\":1}}\n\n"));
  client.close();
  call->finish("{\"x\":\"" + std::string(2 << 20, 'x') + "\"}");
  std::string rest = listen(session, "Last-Event-ID: " + last + "\r\n").read_until("0\r\n\r\n");
  EXPECT_TRUE(contains(rest, R"("id":42,"error")")) << rest;
  EXPECT_LT(rest.size(), 4096u);
}

TEST_F(HttpSessionTest, AnAnswerLargerThanAllQueuesReachesAClientThatReads) {
  core->legacy.answer = [](Received& request) {
    request.progress(1);
    request.finish("{\"x\":\"" + std::string(6 << 20, 'x') + "\"}");
  };
  RawClient client = connect();
  client.send(request_text("POST", "/mcp", begin_session(), call_body("42")));
  std::string stream = client.read_until("0\r\n\r\n");
  EXPECT_TRUE(contains(stream, "x\"}}\n\n")) << stream.size();
}

TEST_F(HttpSessionTest, WhatBelongsToNoRequestGoesToTheListener) {
  std::string session = begin_session();
  EXPECT_FALSE(core_session()->say("{}"));
  RawClient client = listen(session);
  client.read_until("data: \n\n");
  ASSERT_TRUE(eventually([&] { return core_session()->say("{\"n\":1}"); }));
  client.read_until("data: {\"n\":1}\n\n");
}

TEST_F(HttpSessionTest, ANewerListenerReplacesTheOneThatWas) {
  std::string session = begin_session();
  RawClient first = listen(session);
  first.read_until("data: \n\n");
  RawClient second = listen(session);
  first.read_until("0\r\n\r\n");
  second.read_until("data: \n\n");
  ASSERT_TRUE(eventually([&] { return core_session()->say("{\"n\":1}"); }));
  second.read_until("data: {\"n\":1}\n\n");
}

TEST_F(HttpSessionTest, WhatWaitedForAListenerComesOnce) {
  std::string session = begin_session();
  core->legacy.answer = [](Received& request) {
    request.progress(1);
    request.finish();
  };
  post(session + "Accept: application/json\r\n", call_body());
  RawClient first = listen(session);
  std::string got = first.read_until("\"progress\":1}}\n\n");
  RawClient second = listen(session);
  second.read_until("data: \n\n");
  ASSERT_TRUE(eventually([&] { return core_session()->say("{\"n\":2}"); }));
  EXPECT_FALSE(contains(second.read_until("{\"n\":2}\n\n"), "\"progress\":1"));
  RawClient third = listen(session, "Last-Event-ID: " + last_event_id(got) + "\r\n");
  std::string replayed = third.read_until("{\"n\":2}\n\n");
  EXPECT_TRUE(contains(replayed, "{\"n\":2}")) << replayed;
  EXPECT_FALSE(contains(replayed, "\"progress\":1")) << replayed;
}

TEST_F(HttpSessionTest, WhatAJsonClientCannotGetOnItsAnswerGoesToItsListener) {
  std::string session = begin_session();
  RawClient client = listen(session);
  client.read_until("data: \n\n");
  core->legacy.answer = [](Received& request) {
    request.progress(1);
    request.finish();
  };
  std::string response = post(session + "Accept: application/json\r\n", call_body());
  EXPECT_EQ(header_of(response, "Content-Type"), "application/json");
  client.read_until("\"progress\":1}}\n\n");
}

TEST_F(HttpSessionTest, TheListenersStreamNeedsAnAcceptThatAdmitsIt) {
  EXPECT_EQ(status_of(send("GET", "/mcp", begin_session() + "Accept: application/json\r\n")), 406u);
}

TEST_F(HttpSessionTest, ADeletedSessionEndsItsStreams) {
  std::string session = begin_session();
  RawClient client = listen(session);
  client.read_until("data: \n\n");
  EXPECT_EQ(status_of(send("DELETE", "/mcp", session)), 204u);
  client.read_until("0\r\n\r\n");
}

TEST_F(HttpSessionTest, TwoClientsWithTheSameIdGetTheirOwnAnswers) {
  std::vector<std::string> sessions = {begin_session(), begin_session("2025-06-18", "bob")};
  std::vector<RawClient> clients;
  for (const std::string& session : sessions) {
    clients.push_back(connect());
    clients.back().send(request_text("POST", "/mcp", session, call_body("1")));
    received(core->legacy, clients.size() - 1);
  }
  for (const ReceivedPointer& call : core->legacy.requests())
    call->finish("{\"to\":\"" + call->client.principal.name + "\"}");
  EXPECT_TRUE(contains(clients[0].read_response(), "{\"to\":\"alice\"}"));
  EXPECT_TRUE(contains(clients[1].read_response(), "{\"to\":\"bob\"}"));
}

}  // namespace
}  // namespace hive::mcp_surface::test
