#include "cli/mcp_bridge.h"

#include <atomic>
#include <future>
#include <set>

#include <gmock/gmock.h>

#include "cli/mcp_bridge_fixture.h"

namespace hive::cli {
namespace {

using hive::test::Peer;
using test::BridgedClient;
using test::FakeMcpGateway;
using test::HttpRequest;
using test::result_for;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr const char* meta =
    R"("_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}})";

std::string modern(const std::string& id, const std::string& method, const std::string& params = "") {
  return R"({"jsonrpc":"2.0","id":)" + id + R"(,"method":")" + method + R"(","params":{)" + params +
         (params.empty() ? "" : ",") + meta + "}}";
}
std::string legacy(const std::string& id, const std::string& method, const std::string& params = "{}") {
  return R"({"jsonrpc":"2.0","id":)" + id + R"(,"method":")" + method + R"(","params":)" + params + "}";
}

constexpr const char* session_headers = "Content-Type: application/json\r\nMcp-Session-Id: s-1\r\n";
const std::string initialized = R"({"jsonrpc":"2.0","method":"notifications/initialized"})";
const std::string initialize =
    legacy("\"init\"", "initialize", R"({"protocolVersion":"2025-11-25","capabilities":{"roots":{}}})");
const std::string initialize_result = R"({"protocolVersion":"2025-11-25","capabilities":{}})";

/// What every legacy gateway does alike; true when it has answered.
bool answered_handshake(Peer& peer, const HttpRequest& request) {
  if (request.has("\"initialize\"")) {
    peer.answer(200, result_for(request.id(), initialize_result), session_headers);
  } else if (request.has("notifications/initialized")) {
    peer.answer(202, "");
  } else if (request.method() == "GET" && request.header("Last-Event-ID").empty()) {
    peer.answer(405, "");
  } else if (request.method() == "DELETE") {
    peer.answer(204, "");
  } else {
    return false;
  }
  return true;
}

void open_session(BridgedClient& client) {
  client.send(initialize);
  EXPECT_EQ(client.read_line(), result_for("\"init\"", initialize_result));
  client.send(initialized);
}

TEST(McpBridgeTest, AModernRequestCarriesItsHeadersAndTheToken) {
  FakeMcpGateway gateway([](Peer& peer, const HttpRequest& request) { peer.answer(200, result_for(request.id())); });
  BridgedClient client(gateway.url());
  client.send(modern("1", "tools/call", R"("name":"stra\u00dfe","arguments":{})"));
  EXPECT_EQ(client.read_line(), result_for("1"));
  HttpRequest request = gateway.wait_for([](const HttpRequest&) { return true; });
  EXPECT_EQ(request.header("Authorization"), "Bearer secret-token");
  EXPECT_EQ(request.header("Accept"), "application/json, text/event-stream");
  EXPECT_EQ(request.header("Content-Type"), "application/json");
  EXPECT_EQ(request.header("MCP-Protocol-Version"), "2026-07-28");
  EXPECT_EQ(request.header("Mcp-Method"), "tools/call");
  EXPECT_EQ(request.header("Mcp-Name"), "=?base64?c3RyYcOfZQ==?=");
  EXPECT_EQ(request.header("Mcp-Session-Id"), "");
  EXPECT_THAT(request.head, HasSubstr("POST /mcp HTTP/1.1"));
}

TEST(McpBridgeTest, ALegacySessionIsKeptInHeadersAndGivenBackAtTheEnd) {
  FakeMcpGateway gateway([](Peer& peer, const HttpRequest& request) {
    if (!answered_handshake(peer, request)) peer.answer(200, result_for(request.id()));
  });
  BridgedClient client(gateway.url());
  open_session(client);
  client.send(legacy("7", "tools/list"));
  EXPECT_EQ(client.read_line(), result_for("7"));
  HttpRequest list = gateway.wait_for([](const HttpRequest& request) { return request.has("tools/list"); });
  EXPECT_EQ(list.header("Mcp-Session-Id"), "s-1");
  EXPECT_EQ(list.header("MCP-Protocol-Version"), "2025-11-25");
  EXPECT_EQ(list.header("Mcp-Method"), "");
  client.close_input();
  client.join();
  HttpRequest farewell = gateway.wait_for([](const HttpRequest& request) { return request.method() == "DELETE"; });
  EXPECT_EQ(farewell.header("Mcp-Session-Id"), "s-1");
}

TEST(McpBridgeTest, AStreamBecomesLinesInItsOrder) {
  FakeMcpGateway gateway([](Peer& peer, const HttpRequest& request) {
    FakeMcpGateway::stream(peer,
                           ": hello\n\ndata: {\"jsonrpc\":\"2.0\",\ndata:  \"method\":\"notifications/progress\"}\n\n" +
                               FakeMcpGateway::event(result_for(request.id())));
  });
  BridgedClient client(gateway.url());
  client.send(modern("\"a\"", "tools/call", R"("name":"t")"));
  EXPECT_EQ(client.read_line(), R"({"jsonrpc":"2.0",  "method":"notifications/progress"})");
  EXPECT_EQ(client.read_line(), result_for("\"a\""));
}

TEST(McpBridgeTest, TheLastLineNeedsNoNewlineAndLinesMayEndInCrLf) {
  FakeMcpGateway gateway([](Peer& peer, const HttpRequest& request) { peer.answer(200, result_for(request.id())); });
  BridgedClient client(gateway.url());
  client.send_text("\r\n" + modern("0", "ping") + "\r\n");
  EXPECT_EQ(client.read_line(), result_for("0"));
  client.send_text(modern("2", "ping"));
  client.close_input();
  EXPECT_EQ(client.read_line(), result_for("2"));
  EXPECT_EQ(client.read_line(), "");
  EXPECT_LT(client.join(), std::chrono::seconds(2));
}

TEST(McpBridgeTest, WhatIsNoMessageIsRefusedAndTheNextLineServed) {
  FakeMcpGateway gateway([](Peer& peer, const HttpRequest& request) { peer.answer(200, result_for(request.id())); });
  BridgedClient client(gateway.url());
  for (const std::string& line : {std::string("hello"), "\xef\xbb\xbf" + modern("1", "ping"),
                                  std::string("{\"a\":\"") + std::string(std::size_t{5} << 20, 'x') + "\"}"}) {
    client.send(line);
    EXPECT_THAT(client.read_line(), AllOf(HasSubstr("-32700"), Not(HasSubstr("\"id\""))));
  }
  client.send(R"([{"jsonrpc":"2.0","id":1,"method":"ping"}])");
  EXPECT_THAT(client.read_line(), HasSubstr("-32600"));
  client.send(modern("3", "ping"));
  EXPECT_EQ(client.read_line(), result_for("3"));
  EXPECT_EQ(gateway.count([](const HttpRequest&) { return true; }), 1U);
}

TEST(McpBridgeTest, ManyRequestsRunAtOnceAndEachGetsItsAnswer) {
  std::mutex mutex;
  std::condition_variable all_here;
  unsigned arrived = 0;
  FakeMcpGateway gateway([&](Peer& peer, const HttpRequest& request) {
    std::unique_lock lock(mutex);
    if (++arrived == 64) all_here.notify_all();
    all_here.wait_for(lock, std::chrono::seconds(20), [&] { return arrived >= 64; });
    peer.answer(200, result_for(request.id(), "{\"of\":" + request.id() + "}"));
  });
  BridgedClient client(gateway.url());
  std::set<std::string> expected;
  for (int id = 0; id < 64; ++id) {
    std::string text = std::to_string(id);
    client.send(modern(text, "tools/call", R"("name":"t")"));
    expected.insert(result_for(text, "{\"of\":" + text + "}"));
  }
  std::set<std::string> answers;
  for (int id = 0; id < 64; ++id)
    answers.insert(client.read_line());
  EXPECT_EQ(answers, expected);
}

TEST(McpBridgeTest, AnIdThatIsInUseIsRefusedWithoutHarmToTheFirst) {
  std::promise<void> second_was_refused;
  auto go_on = second_was_refused.get_future().share();
  FakeMcpGateway gateway([go_on](Peer& peer, const HttpRequest& request) {
    go_on.wait();
    peer.answer(200, result_for(request.id()));
  });
  BridgedClient client(gateway.url());
  client.send(modern("7", "tools/call", R"("name":"t")"));
  client.send(modern("7", "ping"));
  EXPECT_THAT(client.read_line(), AllOf(HasSubstr("-32600"), HasSubstr("\"id\":7")));
  second_was_refused.set_value();
  EXPECT_EQ(client.read_line(), result_for("7"));
}

TEST(McpBridgeTest, CancellingAModernRequestClosesItsConnection) {
  std::promise<void> closed;
  FakeMcpGateway gateway([&closed](Peer& peer, const HttpRequest& request) {
    if (request.has("\"ping\"")) return static_cast<void>(peer.answer(200, result_for(request.id())));
    FakeMcpGateway::stream(peer, ": open\n\n");
    peer.wait_for_close();
    closed.set_value();
  });
  BridgedClient client(gateway.url());
  client.send(modern("1", "tools/call", R"("name":"sleep")"));
  gateway.wait_for([](const HttpRequest& request) { return request.has("sleep"); });
  client.send(R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":99}})");
  client.send(R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}})");
  EXPECT_EQ(closed.get_future().wait_for(std::chrono::seconds(20)), std::future_status::ready);
  client.send(modern("1", "ping"));
  EXPECT_EQ(client.read_line(), result_for("1"));
  EXPECT_EQ(gateway.count([](const HttpRequest& request) { return request.has("cancelled"); }), 0U);
}

TEST(McpBridgeTest, CancellingALegacyRequestTellsTheGateway) {
  FakeMcpGateway gateway([](Peer& peer, const HttpRequest& request) {
    if (answered_handshake(peer, request)) return;
    if (request.has("cancelled")) return static_cast<void>(peer.answer(202, ""));
    FakeMcpGateway::stream(peer, ": open\n\n");
    peer.wait_for_close();
  });
  BridgedClient client(gateway.url());
  open_session(client);
  client.send(legacy("1", "tools/call", R"({"name":"sleep"})"));
  gateway.wait_for([](const HttpRequest& request) { return request.has("sleep"); });
  client.send(R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1,"reason":"enough"}})");
  HttpRequest told = gateway.wait_for([](const HttpRequest& request) { return request.has("enough"); });
  EXPECT_EQ(told.header("Mcp-Session-Id"), "s-1");
  client.close_input();
  EXPECT_EQ(client.read_line(), "");
}

TEST(McpBridgeTest, AQuestionOfTheGatewayAndItsAnswerPassThrough) {
  const std::string question = R"({"jsonrpc":"2.0","id":"q","method":"roots/list"})";
  std::promise<void> was_answered;
  auto answered = was_answered.get_future().share();
  FakeMcpGateway gateway([&, answered](Peer& peer, const HttpRequest& request) {
    if (answered_handshake(peer, request)) return;
    if (request.has("\"roots\":[]")) {
      peer.answer(202, "");
      return was_answered.set_value();
    }
    FakeMcpGateway::stream(peer, FakeMcpGateway::event(question));
    answered.wait();
    peer.send(FakeMcpGateway::event(result_for(request.id())));
  });
  BridgedClient client(gateway.url());
  open_session(client);
  client.send(legacy("1", "tools/call"));
  EXPECT_EQ(client.read_line(), question);
  client.send(result_for("\"q\"", R"({"roots":[]})"));
  EXPECT_EQ(client.read_line(), result_for("1"));
}

TEST(McpBridgeTest, WhatBelongsToNoRequestComesOnAStreamOfItsOwn) {
  const std::string news = R"({"jsonrpc":"2.0","method":"notifications/tools/list_changed"})";
  FakeMcpGateway gateway([&](Peer& peer, const HttpRequest& request) {
    if (request.method() != "GET") return static_cast<void>(answered_handshake(peer, request));
    if (request.header("Last-Event-ID") == "e1") return static_cast<void>(peer.answer(405, ""));
    FakeMcpGateway::stream(peer, FakeMcpGateway::event(news, "e1"));
    ::shutdown(peer.fd(), SHUT_RDWR);
  });
  BridgedClient client(gateway.url());
  open_session(client);
  EXPECT_EQ(client.read_line(), news);
  HttpRequest first = gateway.wait_for([](const HttpRequest& request) { return request.method() == "GET"; });
  EXPECT_EQ(first.header("Mcp-Session-Id"), "s-1");
  EXPECT_EQ(first.header("Accept"), "text/event-stream");
  gateway.wait_for([](const HttpRequest& request) { return request.header("Last-Event-ID") == "e1"; });
}

TEST(McpBridgeTest, AStreamThatBreaksIsResumedWhereItBroke) {
  FakeMcpGateway gateway([](Peer& peer, const HttpRequest& request) {
    if (answered_handshake(peer, request)) return;
    if (request.header("Last-Event-ID") == "e5") {
      return FakeMcpGateway::stream(peer, FakeMcpGateway::event(result_for("1"), "e6"));
    }
    FakeMcpGateway::stream(peer, "id: e5\nretry: 10\ndata:\n\n");
    ::shutdown(peer.fd(), SHUT_RDWR);
  });
  BridgedClient client(gateway.url());
  open_session(client);
  client.send(legacy("1", "tools/call", R"({"name":"slow"})"));
  EXPECT_EQ(client.read_line(), result_for("1"));
  EXPECT_EQ(gateway.count([](const HttpRequest& request) { return request.has("slow"); }), 1U);
}

TEST(McpBridgeTest, ASessionThatIsLostIsReplacedWithoutTheClientNoticing) {
  std::atomic<int> sessions = 0;
  FakeMcpGateway gateway([&sessions](Peer& peer, const HttpRequest& request) {
    if (request.has("\"initialize\"")) {
      std::string id = "s-" + std::to_string(++sessions);
      peer.answer(200, result_for(request.id(), initialize_result),
                  "Content-Type: application/json\r\nMcp-Session-Id: " + id + "\r\n");
      return;
    }
    bool is_forgotten = request.header("Mcp-Session-Id") == "s-1" && request.has("tools/list");
    if (is_forgotten) return static_cast<void>(peer.answer(404, R"({"jsonrpc":"2.0","error":{"code":-32600}})"));
    if (!answered_handshake(peer, request)) peer.answer(200, result_for(request.id()));
  });
  BridgedClient client(gateway.url());
  open_session(client);
  client.send(legacy("4", "logging/setLevel", R"({"level":"error"})"));
  EXPECT_EQ(client.read_line(), result_for("4"));
  client.send(legacy("5", "tools/list"));
  EXPECT_EQ(client.read_line(), result_for("5"));
  auto in_second = [](std::string_view what) {
    return
        [what](const HttpRequest& request) { return request.has(what) && request.header("Mcp-Session-Id") == "s-2"; };
  };
  gateway.wait_for(in_second("notifications/initialized"));
  gateway.wait_for(in_second(R"({"level":"error"})"));
  gateway.wait_for(in_second("tools/list"));
  EXPECT_EQ(gateway.count([](const HttpRequest& request) { return request.has(R"("capabilities":{"roots":{}})"); }),
            2U);
}

TEST(McpBridgeTest, AGatewayThatIsAwayIsSaidForEachRequest) {
  std::string url;
  {
    FakeMcpGateway gone([](Peer&, const HttpRequest&) {});
    url = gone.url();
  }
  BridgedClient client(url);
  client.send(initialize);
  EXPECT_THAT(client.read_line(),
              AllOf(HasSubstr("\"id\":\"init\""), HasSubstr("the gateway cannot be reached"), HasSubstr("127.0.0.1")));
  client.send(modern("2", "tools/call", R"("name":"t")"));
  EXPECT_THAT(client.read_line(), AllOf(HasSubstr("\"id\":2"), HasSubstr("-32603")));
  EXPECT_THAT(client.notes(), HasSubstr("tools/call: the gateway cannot be reached"));
}

TEST(McpBridgeTest, ACallIsNotSentTwiceButAListIs) {
  std::atomic<int> lists = 0;
  FakeMcpGateway gateway([&lists](Peer& peer, const HttpRequest& request) {
    if (request.has("tools/list") && ++lists == 3) return static_cast<void>(peer.answer(200, result_for(request.id())));
    ::shutdown(peer.fd(), SHUT_RDWR);
  });
  BridgedClient client(gateway.url());
  client.send(modern("1", "tools/call", R"("name":"t")"));
  EXPECT_THAT(client.read_line(), AllOf(HasSubstr("\"id\":1"), HasSubstr("whether the call ran is unknown")));
  client.send(modern("2", "tools/list"));
  EXPECT_EQ(client.read_line(), result_for("2"));
  EXPECT_EQ(gateway.count([](const HttpRequest& request) { return request.has("tools/call"); }), 1U);
}

TEST(McpBridgeTest, ARefusalBecomesAnErrorWithTheClientsIdAndTheRemedy) {
  FakeMcpGateway gateway([](Peer& peer, const HttpRequest& request) {
    if (request.has("\"ping\"")) {
      peer.answer(400,
                  R"({"jsonrpc":"2.0","error":{"code":-32022,"message":"no such revision","data":{"supported":[]}}})");
    } else {
      peer.answer(401, R"({"title":"Unauthorized","detail":"no such token"})");
    }
  });
  BridgedClient client(gateway.url());
  client.send(modern("1", "tools/list"));
  EXPECT_THAT(client.read_line(), AllOf(HasSubstr("\"id\":1"), HasSubstr("HTTP 401: no such token: check the token"),
                                        Not(HasSubstr("secret-token"))));
  client.send(modern("2", "ping"));
  EXPECT_EQ(client.read_line(),
            R"({"jsonrpc":"2.0","id":2,"error":{"code":-32022,"message":"no such revision","data":{"supported":[]}}})");
}

TEST(McpBridgeTest, ArgumentsThatBelongIntoHeadersAreLookedUpWhenTheGatewayMissesThem) {
  FakeMcpGateway gateway([](Peer& peer, const HttpRequest& request) {
    if (request.has("tools/list")) {
      std::string tools = request.has("cursor")
                              ? R"({"tools":[{"name":"sql","inputSchema":{"type":"object","properties":{"region":)"
                                R"({"type":"string","x-mcp-header":"Region"}}}}]})"
                              : R"({"tools":[],"nextCursor":"p2"})";
      peer.answer(200, result_for(request.id(), tools));
    } else if (request.header("Mcp-Param-Region") == "eu") {
      peer.answer(200, result_for(request.id()));
    } else {
      peer.answer(400, R"({"jsonrpc":"2.0","id":1,"error":{"code":-32020,"message":"Mcp-Param-Region is missing"}})");
    }
  });
  BridgedClient client(gateway.url());
  client.send(modern("1", "tools/call", R"("name":"sql","arguments":{"region":"eu"})"));
  EXPECT_EQ(client.read_line(), result_for("1"));
  client.send(modern("2", "tools/call", R"("name":"sql","arguments":{"region":"us"})"));
  EXPECT_THAT(client.read_line(), AllOf(HasSubstr("\"id\":2"), HasSubstr("-32020")));
}

/// A gateway that holds every request for ever.
void hold(Peer& peer, const HttpRequest& request) {
  if (answered_handshake(peer, request)) return;
  FakeMcpGateway::stream(peer, ": open\n\n");
  peer.wait_for_close();
}

TEST(McpBridgeTest, EndsSoonWhenTheInputEndsAlthoughARequestHangs) {
  FakeMcpGateway gateway(hold);
  BridgedClient client(gateway.url());
  client.send(modern("1", "tools/call", R"("name":"t")"));
  client.close_input();
  EXPECT_LT(client.join(), std::chrono::seconds(2));
}

TEST(McpBridgeTest, EndsAtOnceOnASignalAndGivesTheSessionBack) {
  FakeMcpGateway gateway(hold);
  BridgedClient client(gateway.url());
  open_session(client);
  client.send(legacy("1", "tools/call"));
  gateway.wait_for([](const HttpRequest& request) { return request.has("tools/call"); });
  client.stop();
  EXPECT_LT(client.join(), std::chrono::seconds(1));
  gateway.wait_for([](const HttpRequest& request) { return request.method() == "DELETE"; });
}

TEST(McpBridgeTest, EndsSoonWhenNobodyReadsItsOutput) {
  FakeMcpGateway gateway([](Peer& peer, const HttpRequest& request) {
    peer.answer(200, result_for(request.id(), "{\"text\":\"" + std::string(std::size_t{1} << 20, 'x') + "\"}"));
  });
  BridgedClient client(gateway.url());
  client.send(modern("1", "tools/call", R"("name":"t")"));
  client.close_input();
  EXPECT_LT(client.join(), std::chrono::seconds(2));
}

}  // namespace
}  // namespace hive::cli
