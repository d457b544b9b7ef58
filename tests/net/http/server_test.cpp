#include "net/http/server.h"

#include <thread>
#include <vector>

#include "net/http/server_fixture.h"

namespace hive::net::http::test {
namespace {

using testing::Test;

TEST_F(ServerTest, AnswersARequest) {
  start();
  RawClient client(server->port());
  client.send("GET /a%20b?x=1 HTTP/1.1\r\nHost: h\r\n\r\n");
  std::string response = client.read_response();
  EXPECT_EQ(status_of(response), 200u);
  EXPECT_EQ(body_of(response), "GET /a b ");
  EXPECT_EQ(header_of(response, "Content-Type"), "text/plain");
  EXPECT_FALSE(header_of(response, "Date").empty());
  EXPECT_EQ(header_of(response, "X-Content-Type-Options"), "nosniff");
  EXPECT_EQ(header_of(response, "Connection"), "");
}

TEST_F(ServerTest, KeepsTheConnectionForFurtherRequests) {
  start();
  RawClient client(server->port());
  for (int i = 0; i < 50; ++i) {
    client.send("POST /n HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello");
    EXPECT_EQ(body_of(client.read_response()), "POST /n hello");
  }
}

TEST_F(ServerTest, AnswersPipelinedRequestsInOrder) {
  start();
  RawClient client(server->port());
  std::string requests;
  for (int i = 0; i < 100; ++i) {
    requests += "POST /" + std::to_string(i) + " HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nok";
  }
  client.send(requests);
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(body_of(client.read_response()), "POST /" + std::to_string(i) + " ok");
  }
}

TEST_F(ServerTest, AnswersPipelinedRequestsInOrderWhenTheHandlerTakesItsTime) {
  std::vector<std::thread> threads;
  start({}, [&](auto request, auto responder) {
    threads.emplace_back([request, responder] { echo(request, responder); });
  });
  RawClient client(server->port());
  std::string requests;
  for (int i = 0; i < 20; ++i)
    requests += "GET /" + std::to_string(i) + " HTTP/1.1\r\nHost: h\r\n\r\n";
  client.send(requests);
  for (int i = 0; i < 20; ++i)
    EXPECT_EQ(body_of(client.read_response()), "GET /" + std::to_string(i) + " ");
  for (std::thread& thread : threads)
    thread.join();
}

TEST_F(ServerTest, ReadsARequestThatArrivesByteByByte) {
  start();
  RawClient client(server->port());
  for (char c : std::string("POST /slow HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
                            "3\r\nabc\r\n2;x=y\r\nde\r\n0\r\nTrailer: t\r\n\r\n")) {
    ASSERT_TRUE(client.send({&c, 1}));
  }
  EXPECT_EQ(body_of(client.read_response()), "POST /slow abcde");
}

TEST_F(ServerTest, HeadHasTheLengthButNoBody) {
  start();
  std::string response = exchange("HEAD /x HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
  EXPECT_EQ(header_of(response, "Content-Length"), "8");
  EXPECT_EQ(body_of(response), "");
}

TEST_F(ServerTest, ClosesWhenTheClientAsksForIt) {
  start();
  std::string response = exchange("GET / HTTP/1.1\r\nHost: h\r\nConnection: Close\r\n\r\n");
  EXPECT_EQ(status_of(response), 200u);
  EXPECT_EQ(header_of(response, "Connection"), "close");
}

TEST_F(ServerTest, Http10ClosesUnlessAskedToKeepAlive) {
  start();
  std::string response = exchange("GET / HTTP/1.0\r\n\r\n");
  EXPECT_EQ(status_of(response), 200u);
  EXPECT_EQ(header_of(response, "Connection"), "close");

  RawClient client(server->port());
  for (int i = 0; i < 2; ++i) {
    client.send("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    EXPECT_EQ(header_of(client.read_response(), "Connection"), "keep-alive");
  }
}

TEST_F(ServerTest, AsksForTheBodyOfAnExpectation) {
  start();
  RawClient client(server->port());
  client.send("POST /e HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n");
  EXPECT_EQ(client.read_until("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  client.send("ok");
  EXPECT_EQ(body_of(client.read_response()), "POST /e ok");
}

TEST_F(ServerTest, RefusesATooLargeExpectationBeforeTheBody) {
  start({.max_body_bytes = 10});
  std::string response = exchange("POST /e HTTP/1.1\r\nHost: h\r\nContent-Length: 11\r\nExpect: 100-continue\r\n\r\n");
  EXPECT_EQ(status_of(response), 413u);
}

TEST_F(ServerTest, LetsTheClientReadTheRefusalOfABodyThatIsStillArriving) {
  start({.max_body_bytes = 1000});
  RawClient client(server->port());
  client.send("POST /e HTTP/1.1\r\nHost: h\r\nContent-Length: 200000\r\n\r\n");
  client.send(std::string(200000, 'x'));
  std::string response = client.read_all();
  EXPECT_EQ(status_of(response), 413u);
  EXPECT_EQ(header_of(response, "Content-Type"), "application/problem+json");
  EXPECT_NE(body_of(response).find("larger than 1000 bytes"), std::string_view::npos) << response;
}

TEST_F(ServerTest, CountsAChunkedBodyByTheBytesReceived) {
  start({.max_body_bytes = 1000});
  RawClient client(server->port());
  client.send("POST /e HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n");
  for (int i = 0; i < 11; ++i)
    client.send("64\r\n" + std::string(100, 'x') + "\r\n");
  EXPECT_EQ(status_of(client.read_all()), 413u);
}

TEST_F(ServerTest, WritesALargeAnswerWhole) {
  std::string large(8 << 20, 'z');
  start({}, [&](auto, auto responder) {
    responder->respond({.content_type = "text/plain", .headers = {}, .body = large});
  });
  RawClient client(server->port());
  for (int i = 0; i < 2; ++i) {
    client.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
    EXPECT_EQ(body_of(client.read_response()), large);
  }
}

TEST_F(ServerTest, AHeaderValueCannotBeginANewLine) {
  start({}, [&](auto, auto responder) {
    responder->respond({.headers = {{"X-Name", "a\r\nX-Forged: yes"}}, .body = "{}"});
  });
  RawClient client(server->port());
  client.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
  std::string response = client.read_response();
  EXPECT_EQ(header_of(response, "X-Forged"), "");
  EXPECT_EQ(header_of(response, "X-Name"), "a  X-Forged: yes");
}

TEST_F(ServerTest, ARequestThatTheHandlerDropsIsAnswered500) {
  start({}, [](auto, auto) {});
  RawClient client(server->port());
  client.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
  EXPECT_EQ(status_of(client.read_response()), 500u);
}

TEST_F(ServerTest, AHandlerThatThrowsIsAnswered500) {
  start({}, [](auto, auto) { throw std::runtime_error("a mistake of ours"); });
  RawClient client(server->port());
  client.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
  std::string response = client.read_response();
  EXPECT_EQ(status_of(response), 500u);
  EXPECT_EQ(response.find("mistake"), std::string::npos);
}

TEST_F(ServerTest, OnlyTheFirstOfTwoAnswersCounts) {
  start({}, [](auto request, auto responder) {
    echo(request, responder);
    responder->respond({.status = 500, .headers = {}, .body = "{}"});
  });
  RawClient client(server->port());
  for (int i = 0; i < 2; ++i) {
    client.send("GET /once HTTP/1.1\r\nHost: h\r\n\r\n");
    EXPECT_EQ(body_of(client.read_response()), "GET /once ");
  }
}

TEST_F(ServerTest, GivesTheHandlerTheAddressesOfBothEnds) {
  std::string peer, local;
  start({.listen_address = "[::]:0"}, [&](auto request, auto responder) {
    peer = request->peer_address;
    local = request->local_address;
    responder->respond({});
  });
  RawClient four(server->port());
  four.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
  four.read_response();
  EXPECT_EQ(peer, "127.0.0.1");
  EXPECT_EQ(local, "127.0.0.1");
  RawClient six(server->port(), "::1");
  six.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
  six.read_response();
  EXPECT_EQ(peer, "::1");
}

TEST_F(ServerTest, RefusesToServePlaintextBeyondLoopback) {
  for (const char* address : {"0.0.0.0:0", ":0", "[::]:0", "192.0.2.1:0"}) {
    auto made = Server::listen(runtime, {.listen_address = address, .loopback_only = true}, echo);
    ASSERT_FALSE(made) << address;
    EXPECT_NE(made.error().message.find("loopback"), std::string::npos);
  }
  EXPECT_TRUE(Server::listen(runtime, {.listen_address = "[::1]:0", .loopback_only = true}, echo));
  EXPECT_TRUE(Server::listen(runtime, {.listen_address = "localhost:0", .loopback_only = true}, echo));
}

TEST_F(ServerTest, NamesTheAddressThatIsTaken) {
  start();
  std::string address = "127.0.0.1:" + std::to_string(server->port());
  auto second = Server::listen(runtime, {.listen_address = address}, echo);
  ASSERT_FALSE(second);
  EXPECT_NE(second.error().message.find(address), std::string::npos) << second.error().message;
}

}  // namespace
}  // namespace hive::net::http::test
