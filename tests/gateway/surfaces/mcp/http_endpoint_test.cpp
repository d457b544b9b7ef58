// Modern MCP over HTTP (2026-07-28), and what all eras have in common.

#include "gateway/surfaces/mcp/http_fixture.h"

namespace hive::mcp_surface::test {
namespace {

const std::string both = "Accept: application/json, text/event-stream\r\n";

TEST_F(HttpTest, AModernRequestIsAnsweredWithJson) {
  core->modern.answer = [](Received& request) { request.finish(R"({"tools":[]})"); };
  std::string response = post(modern_headers("tools/list", both), modern_body("tools/list", "\"a\""));
  EXPECT_EQ(status_of(response), 200u) << response;
  EXPECT_EQ(header_of(response, "Content-Type"), "application/json");
  EXPECT_EQ(header_of(response, "Myrmex-Request-Id"), "r-1");
  EXPECT_EQ(header_of(response, "Mcp-Session-Id"), "");
  EXPECT_EQ(body_of(response), R"({"jsonrpc":"2.0","id":"a","result":{"tools":[]}})");
  EXPECT_EQ(core->modern.requests().at(0)->client.principal.name, "alice");
  EXPECT_EQ(core->modern.requests().at(0)->client.request_id, "r-1");
}

TEST_F(HttpTest, AnErrorsHttpStatusIsTheCores) {
  core->modern.answer = [](Received& request) { request.finish("{}", 404); };
  EXPECT_EQ(status_of(post(modern_headers("no/such"), modern_body("no/such"))), 404u);
}

TEST_F(HttpTest, WhatPrecedesTheAnswerMakesItAStream) {
  RawClient client = connect();
  client.send(request_text("POST", "/mcp", modern_headers("tools/call", both + "Mcp-Name: x\r\n"),
                           modern_body("tools/call", "1", R"("name":"x")")));
  ReceivedPointer call = received(core->modern);
  call->progress(1);
  std::string stream = client.read_until("\"progress\":1}}\n\n");
  EXPECT_EQ(status_of(stream), 200u) << stream;
  EXPECT_EQ(header_of(stream, "Content-Type"), "text/event-stream");
  EXPECT_EQ(header_of(stream, "X-Accel-Buffering"), "no");
  call->progress(2);
  call->finish();
  stream = client.read_until("0\r\n\r\n");
  EXPECT_LT(stream.find("\"progress\":2"), stream.find("\"result\":{}")) << stream;
  EXPECT_FALSE(contains(stream, "id: ")) << "modern streams cannot be resumed";
}

TEST_F(HttpTest, OrderHoldsWhateverThreadsTheMessagesComeFrom) {
  core->modern.answer = [](Received& request) {
    // From another thread than the connection's, one after the other.
    std::thread([&request] {
      for (int i = 0; i < 200; ++i)
        request.progress(i);
    }).join();
    request.finish();
  };
  std::string headers = modern_headers("tools/call", both + "Mcp-Name: x\r\nConnection: close\r\n");
  RawClient client = connect();
  client.send(request_text("POST", "/mcp", headers, modern_body("tools/call", "1", R"("name":"x")")));
  std::string stream = client.read_all();
  std::size_t last = 0;
  for (int i = 0; i < 200; ++i) {
    std::size_t at = stream.find("\"progress\":" + std::to_string(i) + "}");
    ASSERT_NE(at, std::string::npos) << i;
    EXPECT_GT(at, last);
    last = at;
  }
  EXPECT_GT(stream.find("\"result\""), last);
}

TEST_F(HttpTest, AClientThatTakesOnlyJsonGetsNoNotifications) {
  core->modern.answer = [](Received& request) {
    request.progress(1);
    request.finish();
  };
  std::string response = post(modern_headers("ping", "Accept: application/json\r\n"), modern_body("ping"));
  EXPECT_EQ(header_of(response, "Content-Type"), "application/json");
  EXPECT_EQ(body_of(response), R"({"jsonrpc":"2.0","id":1,"result":{}})");
}

TEST_F(HttpTest, AClientThatTakesOnlyEventsGetsAStream) {
  core->modern.answer = [](Received& request) { request.finish(); };
  RawClient client = connect();
  client.send(
      request_text("POST", "/mcp", modern_headers("ping", "Accept: text/event-stream\r\n"), modern_body("ping")));
  std::string stream = client.read_until("0\r\n\r\n");
  EXPECT_TRUE(contains(stream, "event: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n\n")) << stream;
}

TEST_F(HttpTest, AcceptIsReadWithWildcardsAndWeights) {
  core->modern.answer = [](Received& request) { request.finish(); };
  for (const char* accept : {"", "Accept: */*\r\n", "Accept: application/json;q=0.9, text/event-stream;q=0.1\r\n",
                             "Accept: application/*\r\n", "Accept: text/html\r\nAccept: application/json\r\n"})
    EXPECT_EQ(status_of(post(modern_headers("ping", accept), modern_body("ping"))), 200u) << accept;
  EXPECT_EQ(status_of(post(modern_headers("ping", "Accept: text/html\r\n"), modern_body("ping"))), 406u);
  EXPECT_EQ(status_of(post(modern_headers("ping", "Accept: application/json;q=0\r\n"), modern_body("ping"))), 406u);
  std::string listen = "subscriptions/listen";
  EXPECT_EQ(status_of(post(modern_headers(listen, "Accept: application/json\r\n"), modern_body(listen))), 406u);
}

TEST_F(HttpTest, WhatIsWrongWithAModernRequestIsSaidInTheOrderOfTheSpecification) {
  struct Case {
    std::string headers;
    std::string body;
    int code;
  };
  std::string version = "MCP-Protocol-Version: 2026-07-28\r\n";
  std::string unknown_body = modern_body("ping");
  unknown_body.replace(unknown_body.find("2026-07-28"), 10, "2099-01-01");
  const Case cases[] = {
      {version, "[" + modern_body("ping") + "]", -32600},
      {version, R"({"jsonrpc":"1.0","id":1,"method":"ping"})", -32600},
      {version, R"({"jsonrpc":"2.0","id":1,"result":{}})", -32600},
      {version, "{", -32700},
      {"Mcp-Method: ping\r\n", modern_body("ping"), -32020},
      {version + version + "Mcp-Method: ping\r\n", modern_body("ping"), -32020},
      {version, R"({"jsonrpc":"2.0","id":1,"method":"ping"})", -32602},
      {version, unknown_body, -32020},
      {"MCP-Protocol-Version: 2099-01-01\r\n", modern_body("ping"), -32020},
      {"MCP-Protocol-Version: 2099-01-01\r\n", unknown_body, -32022},
      {version, modern_body("ping"), -32020},
      {version + "Mcp-Method: tools/list\r\n", modern_body("ping"), -32020},
      {version + "Mcp-Method: tools/call\r\n", modern_body("tools/call", "1", R"("name":"x")"), -32020},
      {version + "Mcp-Method: tools/call\r\nMcp-Name: mirrors\r\n",
       modern_body("tools/call", "1", R"("name":"mirrors","arguments":{"region":"eu"})"), -32020},
      {version + "Mcp-Method: tools/call\r\nMcp-Name: mirrors\r\nMcp-Param-Region: us\r\n",
       modern_body("tools/call", "1", R"("name":"mirrors","arguments":{"region":"eu"})"), -32020},
  };
  for (const Case& each : cases) {
    std::string response = post(each.headers, each.body);
    EXPECT_EQ(status_of(response), 400u) << each.headers << each.body << response;
    EXPECT_TRUE(contains(body_of(response), "\"code\":" + std::to_string(each.code)))
        << each.headers << each.body << "\n"
        << response;
    EXPECT_FALSE(contains(body_of(response), "\"id\":null")) << response;
  }
  EXPECT_TRUE(core->modern.requests().empty());
}

TEST_F(HttpTest, HeadersThatMirrorTheBodyLetTheRequestThrough) {
  core->modern.answer = [](Received& request) { request.finish(); };
  std::string body = modern_body("tools/call", "1", R"("name":"mirrors","arguments":{"region":"eu"})");
  std::string headers =
      "MCP-PROTOCOL-VERSION: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: =?base64?bWlycm9ycw==?=\r\n"
      "Mcp-Param-Region: eu\r\nMcp-Session-Id: of-another-time\r\n";
  EXPECT_EQ(status_of(post(headers, body)), 200u);
}

TEST_F(HttpTest, AModernNotificationIsAcceptedWithoutAnAnswer) {
  std::string response = post(modern_headers("notifications/cancelled"),
                              R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}})");
  EXPECT_EQ(status_of(response), 202u);
  EXPECT_EQ(body_of(response), "");
}

TEST_F(HttpTest, AClientThatGoesAwayHasWithdrawnItsModernRequest) {
  for (bool has_stream : {false, true}) {
    RawClient client = connect();
    client.send(request_text("POST", "/mcp", modern_headers("tools/call", both + "Mcp-Name: x\r\n"),
                             modern_body("tools/call", "1", R"("name":"x")")));
    ReceivedPointer call = received(core->modern, has_stream ? 1 : 0);
    if (has_stream) {
      call->progress(1);
      client.read_until("\"progress\":1");
    }
    client.close();
    EXPECT_TRUE(eventually([&] { return call->running->is_cancelled.load(); })) << has_stream;
  }
}

TEST_F(HttpTest, ARequestThatTheCoreDropsIsAnswered) {
  core->modern.answer = [](Received& request) { request.reply = nullptr; };
  std::string response = post(modern_headers("ping"), modern_body("ping", "7"));
  EXPECT_EQ(status_of(response), 500u);
  EXPECT_TRUE(contains(body_of(response), "\"id\":7")) << response;
}

TEST_F(HttpTest, AStreamThatIsSilentHasHeartbeats) {
  options.heartbeat = std::chrono::milliseconds(20);
  RawClient client = connect();
  client.send(
      request_text("POST", "/mcp", modern_headers("subscriptions/listen", both), modern_body("subscriptions/listen")));
  received(core->modern)->reply->send("{\"a\":1}");
  std::string stream = client.read_until(": heartbeat\n\n");
  EXPECT_TRUE(contains(stream, "{\"a\":1}")) << stream;
  client.read_until(": heartbeat\n\n");
}

TEST_F(HttpTest, ALongRequestBecomesAStreamBeforeProxiesGiveUpOnIt) {
  options.heartbeat = std::chrono::milliseconds(20);
  RawClient client = connect();
  client.send(request_text("POST", "/mcp", modern_headers("ping", both), modern_body("ping")));
  std::string stream = client.read_until(": heartbeat\n\n");
  EXPECT_EQ(header_of(stream, "Content-Type"), "text/event-stream");
  received(core->modern)->finish();
  EXPECT_TRUE(contains(client.read_until("0\r\n\r\n"), "\"result\""));
}

TEST_F(HttpTest, ASubscriptionEndsWithItsCredential) {
  options.heartbeat = std::chrono::milliseconds(20);
  RawClient client = connect();
  client.send(
      request_text("POST", "/mcp", modern_headers("subscriptions/listen", both), modern_body("subscriptions/listen")));
  ReceivedPointer call = received(core->modern);
  call->reply->send("{}");
  client.read_until("data: {}\n\n");
  is_admitted = false;
  client.read_until("0\r\n\r\n");
  EXPECT_TRUE(eventually([&] { return call->running->is_cancelled.load(); }));
}

TEST_F(HttpTest, OneIdentityHasABoundedNumberOfStreams) {
  options.max_streams_per_identity = 2;
  std::string listen = "subscriptions/listen";
  std::vector<RawClient> clients;
  for (int i = 0; i < 2; ++i) {
    clients.push_back(connect());
    clients.back().send(request_text("POST", "/mcp", modern_headers(listen, both), modern_body(listen)));
    received(core->modern, static_cast<std::size_t>(i))->reply->send("{}");
    clients.back().read_until("data: {}\n\n");
  }
  std::string response = post(modern_headers(listen, both), modern_body(listen));
  EXPECT_EQ(status_of(response), 429u) << response;
  RawClient other = connect();
  other.send(request_text("POST", "/mcp", modern_headers(listen, both + "X-User: bob\r\n"), modern_body(listen)));
  received(core->modern, 2)->reply->send("{}");
  EXPECT_EQ(status_of(other.read_until("data: {}\n\n")), 200u);
  clients.clear();
  for (const ReceivedPointer& request : core->modern.requests())
    EXPECT_TRUE(request->client.principal.name == "bob" ||
                eventually([&] { return request->running->is_cancelled.load(); }));
  for (const ReceivedPointer& request : core->modern.requests())
    request->reply = nullptr;
  core->modern.answer = [](Received& request) { request.finish(); };
  EXPECT_EQ(status_of(post(modern_headers(listen, "Accept: */*\r\n"), modern_body(listen))), 200u);
}

TEST_F(HttpTest, AClientThatDoesNotReadIsCutOff) {
  RawClient slow = connect();
  slow.shrink_receive_buffer();
  slow.send(
      request_text("POST", "/mcp", modern_headers("subscriptions/listen", both), modern_body("subscriptions/listen")));
  ReceivedPointer call = received(core->modern);
  std::string message = "{\"a\":\"" + std::string(65536, 'x') + "\"}";
  EXPECT_TRUE(eventually([&] {
    call->reply->send(message);
    return call->running->is_cancelled.load();
  }));
}

TEST_F(HttpTest, AModernClientHasNeitherGetNorDelete) {
  for (const char* method : {"GET", "DELETE"}) {
    std::string response = send(method, "/mcp", "MCP-Protocol-Version: 2026-07-28\r\n");
    EXPECT_EQ(status_of(response), 405u);
    EXPECT_EQ(header_of(response, "Allow"), "POST, OPTIONS");
  }
}

TEST_F(HttpTest, AfterCloseNobodyIsServedAndStreamsHaveEnded) {
  std::string session = begin_session();
  RawClient listener = connect();
  listener.send(request_text("GET", "/mcp", session));
  listener.read_until("data: \n\n");
  RawClient events = connect();
  events.send(request_text("GET", "/sse", ""));
  events.read_until("session_id=");
  std::string path = "/message?session_id=" + core->sessions().at(1)->id();
  EXPECT_EQ(status_of(send("POST", path, "", call_body())), 202u);
  ReceivedPointer call = received(core->legacy);
  endpoint->close();
  EXPECT_TRUE(contains(listener.read_until("0\r\n\r\n"), "retry: "));
  // Whoever waits for an answer gets it first.
  call->finish();
  EXPECT_TRUE(contains(events.read_until("0\r\n\r\n"), "\"result\""));
  std::string response = post(modern_headers("ping"), modern_body("ping"));
  EXPECT_EQ(status_of(response), 503u);
  EXPECT_NE(header_of(response, "Retry-After"), "");
}

}  // namespace
}  // namespace hive::mcp_surface::test
