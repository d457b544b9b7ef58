// MCP 2024-11-05 over HTTP+SSE.

#include "gateway/surfaces/mcp/http_fixture.h"

namespace hive::mcp_surface::test {
namespace {

class EventsTest : public HttpTest {
 protected:
  /// Opens a stream and returns the path to post to.
  std::string open(RawClient& client, const std::string& headers = "") {
    client.send(request_text("GET", "/sse", headers));
    std::string begin = client.read_until("\n\n");
    EXPECT_TRUE(contains(begin, "event: endpoint\ndata: /message?session_id=")) << begin;
    std::size_t at = begin.rfind("/message");
    return begin.substr(at, begin.find('\n', at) - at);
  }
};

TEST_F(EventsTest, AnswersArriveOnTheStream) {
  core->legacy.answer = [](Received& request) {
    request.progress(1);
    request.finish();
  };
  RawClient client = connect();
  std::string path = open(client);
  std::string response = send("POST", path, "", call_body("\"a\""));
  EXPECT_EQ(status_of(response), 202u);
  EXPECT_EQ(body_of(response), "");
  std::string events = client.read_until("\"result\":{}}\n\n");
  EXPECT_LT(events.find("\"progress\":1"), events.find("\"id\":\"a\"")) << events;
  EXPECT_EQ(core->legacy.requests().at(0)->client.surface, calls::Surface::mcp_sse);
  EXPECT_EQ(status_of(send("POST", path, "", R"({"jsonrpc":"2.0","method":"notifications/initialized"})")), 202u);
  EXPECT_EQ(core->legacy.accepted().size(), 1u);
}

TEST_F(EventsTest, WhatIsNoMessageIsRefused) {
  RawClient client = connect();
  std::string path = open(client);
  EXPECT_EQ(status_of(send("POST", path, "", "nonsense")), 400u);
  EXPECT_EQ(status_of(send("POST", path, "", "[" + call_body() + "]")), 400u);
}

TEST_F(EventsTest, WhatBelongsToNoRequestArrivesToo) {
  RawClient client = connect();
  open(client);
  EXPECT_TRUE(core->sessions().at(0)->say("{\"n\":1}"));
  client.read_until("event: message\ndata: {\"n\":1}\n\n");
}

TEST_F(EventsTest, ASessionEndsWithItsStream) {
  RawClient client = connect();
  std::string path = open(client);
  client.close();
  EXPECT_TRUE(eventually([&] { return core->sessions().at(0)->is_closed.load(); }));
  EXPECT_EQ(status_of(send("POST", path, "", call_body())), 404u);
  EXPECT_EQ(endpoint->session_count(), 0u);
}

TEST_F(EventsTest, ASessionIsItsOwnersAlone) {
  RawClient client = connect();
  std::string path = open(client);
  EXPECT_EQ(status_of(send("POST", path, "X-User: mallory\r\n", call_body())), 404u);
  EXPECT_EQ(refused(), std::vector<std::string>{"foreign_session"});
  EXPECT_EQ(status_of(send("POST", "/message?session_id=0123", "", call_body())), 404u);
  EXPECT_EQ(status_of(send("POST", "/message", "", call_body())), 400u);
  EXPECT_TRUE(core->legacy.requests().empty());
}

TEST_F(EventsTest, ASessionThatWasLeftBehindMakesRoom) {
  core->max_sessions = 1;
  begin_session();
  RawClient client = connect();
  open(client);
  EXPECT_TRUE(core->sessions().at(0)->is_closed);
  EXPECT_EQ(status_of(send("GET", "/sse", "")), 503u);
}

TEST_F(EventsTest, TheStreamNeedsAnAcceptThatAdmitsIt) {
  EXPECT_EQ(status_of(send("GET", "/sse", "Accept: application/json\r\n")), 406u);
}

TEST_F(EventsTest, OneIdentityHasABoundedNumberOfStreams) {
  options.max_streams_per_identity = 1;
  RawClient client = connect();
  open(client);
  EXPECT_EQ(status_of(send("GET", "/sse", "")), 429u);
  client.close();
  EXPECT_TRUE(eventually([&] { return endpoint->session_count() == 0; }));
  RawClient next = connect();
  open(next);
}

TEST_F(EventsTest, AClientThatDoesNotReadIsCutOffAndOthersAreUnharmed) {
  RawClient slow = connect();
  slow.shrink_receive_buffer();
  open(slow);
  RawClient other = connect();
  open(other);
  auto sessions = core->sessions();
  std::string message = "{\"a\":\"" + std::string(65536, 'x') + "\"}";
  EXPECT_TRUE(eventually([&] {
    sessions.at(0)->say(message);
    return sessions.at(0)->is_closed.load();
  }));
  EXPECT_TRUE(sessions.at(1)->say("{\"n\":1}"));
  other.read_until("data: {\"n\":1}\n\n");
}

}  // namespace
}  // namespace hive::mcp_surface::test
