// Deadlines, limits, disconnects, streams and the end of a server.

#include <atomic>
#include <thread>
#include <vector>

#include "net/http/server_fixture.h"

namespace hive::net::http::test {
namespace {

using std::chrono::milliseconds;

class ConnectionLifeTest : public ServerTest {
 protected:
  /// Keeps the responders, so that a test can answer them.
  void start_holding(ServerOptions options = {}) {
    start(std::move(options), [this](auto request, auto responder) {
      if (request->path == "/now") return echo(request, responder);
      std::lock_guard lock(mutex);
      held.push_back(std::move(responder));
    });
  }
  std::shared_ptr<Responder> take_held() {
    std::shared_ptr<Responder> taken;
    EXPECT_TRUE(eventually([&] {
      std::lock_guard lock(mutex);
      if (held.empty()) return false;
      taken = std::move(held.front());
      held.erase(held.begin());
      return true;
    }));
    return taken;
  }
  bool still_serves() {
    RawClient client(server->port());
    client.send("GET /now HTTP/1.1\r\nHost: h\r\n\r\n");
    return status_of(client.read_response()) == 200;
  }

  std::mutex mutex;
  std::vector<std::shared_ptr<Responder>> held;
};

TEST_F(ConnectionLifeTest, ASlowHeadIsAnswered408) {
  start_holding({.header_timeout = milliseconds(100)});
  RawClient client(server->port());
  client.send("GET / HTTP/1.1\r\nHost: ");
  EXPECT_EQ(status_of(client.read_all()), 408u);
}

TEST_F(ConnectionLifeTest, AConnectionThatSaysNothingIsClosedWithoutAWord) {
  start_holding({.header_timeout = milliseconds(100)});
  RawClient client(server->port());
  EXPECT_EQ(client.read_all(), "");
}

TEST_F(ConnectionLifeTest, TheHeadsDeadlineDoesNotMoveWithEveryByte) {
  start_holding({.header_timeout = milliseconds(200)});
  RawClient client(server->port());
  client.send("GET /");
  auto began = std::chrono::steady_clock::now();
  while (client.stays_silent(milliseconds(20))) {
    ASSERT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(5));
    client.send("x");
  }
  EXPECT_EQ(status_of(client.read_all()), 408u);
}

TEST_F(ConnectionLifeTest, ASlowBodyIsAnswered408) {
  start_holding({.header_timeout = milliseconds(60'000), .body_timeout = milliseconds(100)});
  RawClient client(server->port());
  client.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\nhal");
  EXPECT_EQ(status_of(client.read_all()), 408u);
}

TEST_F(ConnectionLifeTest, AnIdleConnectionIsClosedAfterItsTime) {
  start_holding({.idle_timeout = milliseconds(100)});
  RawClient client(server->port());
  client.send("GET /now HTTP/1.1\r\nHost: h\r\n\r\n");
  EXPECT_EQ(status_of(client.read_response()), 200u);
  EXPECT_EQ(client.read_all(), "");
}

TEST_F(ConnectionLifeTest, ACallThatTakesItsTimeHasNoDeadlineHere) {
  start_holding({.header_timeout = milliseconds(50),
                 .body_timeout = milliseconds(50),
                 .idle_timeout = milliseconds(50),
                 .write_timeout = milliseconds(50)});
  RawClient client(server->port());
  client.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
  auto responder = take_held();
  EXPECT_TRUE(client.stays_silent(milliseconds(300)));
  responder->respond({.body = "{}"});
  EXPECT_EQ(status_of(client.read_response()), 200u);
}

TEST_F(ConnectionLifeTest, FiveHundredSlowClientsLeaveOthersUnharmed) {
  start_holding({.header_timeout = milliseconds(1500)});
  std::vector<std::unique_ptr<RawClient>> slow;
  for (int i = 0; i < 500; ++i) {
    slow.push_back(std::make_unique<RawClient>(server->port()));
    slow.back()->send("GET / HT");
  }
  for (int i = 0; i < 20; ++i) {
    auto began = std::chrono::steady_clock::now();
    EXPECT_TRUE(still_serves());
    EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(1));
  }
  for (auto& client : slow)
    EXPECT_EQ(status_of(client->read_all()), 408u);
}

TEST_F(ConnectionLifeTest, AReaderThatDoesNotReadIsDropped) {
  start({.write_timeout = milliseconds(100)}, [&](auto request, auto responder) {
    if (request->path == "/now") return echo(request, responder);
    auto stream = responder->respond_stream({.content_type = "text/plain"});
    for (int i = 0; i < 100; ++i) {
      if (!stream->send(std::string(std::size_t{1} << 19, 'x'))) break;
    }
    stream->end();
  });
  RawClient client(server->port());
  client.shrink_receive_buffer();
  client.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
  EXPECT_TRUE(eventually([&] { return server->open_connections() == 0; }));
  EXPECT_TRUE(still_serves());
}

TEST_F(ConnectionLifeTest, ConnectionsOfOneSourceAreLimited) {
  start_holding({.max_connections_per_source = 2});
  RawClient first(server->port());
  RawClient second(server->port());
  first.send("GET /now HTTP/1.1\r\nHost: h\r\n\r\n");
  second.send("GET /now HTTP/1.1\r\nHost: h\r\n\r\n");
  EXPECT_EQ(status_of(first.read_response()), 200u);
  EXPECT_EQ(status_of(second.read_response()), 200u);
  RawClient third(server->port());
  std::string refused = third.read_all();
  EXPECT_EQ(status_of(refused), 503u);
  EXPECT_EQ(header_of(refused, "Retry-After"), "5");
  EXPECT_EQ(header_of(refused, "Content-Length"), std::to_string(body_of(refused).size()));
  first.close();
  EXPECT_TRUE(eventually([&] { return still_serves(); }));
}

TEST_F(ConnectionLifeTest, AllConnectionsTogetherAreLimited) {
  start_holding({.max_connections = 1});
  RawClient first(server->port());
  first.send("GET /now HTTP/1.1\r\nHost: h\r\n\r\n");
  EXPECT_EQ(status_of(first.read_response()), 200u);
  EXPECT_EQ(status_of(RawClient(server->port()).read_all()), 503u);
}

TEST_F(ConnectionLifeTest, AClientThatGoesAwayIsNoticedWhileTheHandlerWorks) {
  start_holding();
  for (bool hard : {false, true}) {
    RawClient client(server->port());
    client.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
    auto responder = take_held();
    std::atomic<bool> gone = false;
    responder->on_disconnect([&] { gone = true; });
    EXPECT_FALSE(gone);
    hard ? client.reset() : client.close();
    EXPECT_TRUE(eventually([&] { return gone.load(); }));
    responder->respond({});
  }
  EXPECT_TRUE(eventually([&] { return server->open_connections() == 0; }));
}

TEST_F(ConnectionLifeTest, AClientThatWentAwayBeforeAnybodyAskedIsReportedAtOnce) {
  start_holding();
  RawClient client(server->port());
  client.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
  auto responder = take_held();
  client.reset();
  ASSERT_TRUE(eventually([&] { return server->open_connections() == 0; }));
  std::atomic<bool> gone = false;
  responder->on_disconnect([&] { gone = true; });
  EXPECT_TRUE(eventually([&] { return gone.load(); }));
}

TEST_F(ConnectionLifeTest, AClientThatEndsItsSideStillGetsItsAnswer) {
  start_holding();
  RawClient client(server->port());
  client.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
  client.end_sending();
  auto responder = take_held();
  std::atomic<bool> reported = false;
  responder->on_disconnect([&] { reported = true; });
  EXPECT_TRUE(eventually([&] { return reported.load(); }));
  responder->respond({.body = "late"});
  EXPECT_EQ(body_of(client.read_all()), "late");
}

TEST_F(ConnectionLifeTest, NothingIsReportedOnceTheAnswerIsWritten) {
  start_holding();
  std::atomic<bool> gone = false;
  {
    RawClient client(server->port());
    client.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
    auto responder = take_held();
    responder->on_disconnect([&] { gone = true; });
    responder->respond({.body = "{}"});
    client.read_response();
  }
  EXPECT_TRUE(eventually([&] { return server->open_connections() == 0; }));
  EXPECT_FALSE(gone);
}

TEST_F(ConnectionLifeTest, AnswersMayComeFromAnyThread) {
  start_holding();
  std::vector<std::unique_ptr<RawClient>> clients;
  for (int i = 0; i < 20; ++i) {
    clients.push_back(std::make_unique<RawClient>(server->port()));
    clients.back()->send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
  }
  std::vector<std::thread> threads;
  for (int i = 0; i < 20; ++i) {
    threads.emplace_back([responder = take_held()] { responder->respond({.body = "{}"}); });
  }
  for (auto& client : clients)
    EXPECT_EQ(status_of(client->read_response()), 200u);
  for (std::thread& thread : threads)
    thread.join();
}

TEST_F(ConnectionLifeTest, AStreamArrivesPieceByPiece) {
  start_holding();
  RawClient client(server->port());
  client.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
  auto stream = take_held()->respond_stream({.content_type = "text/event-stream"});
  std::string head = client.read_until("\r\n\r\n");
  EXPECT_EQ(header_of(head, "Transfer-Encoding"), "chunked");
  EXPECT_EQ(header_of(head, "Content-Length"), "");
  EXPECT_TRUE(stream->send("one"));
  EXPECT_EQ(client.read_until("one\r\n"), "3\r\none\r\n");
  EXPECT_TRUE(stream->send("twelve bytes"));
  EXPECT_EQ(client.read_until("bytes\r\n"), "c\r\ntwelve bytes\r\n");
  stream->end();
  EXPECT_EQ(client.read_until("0\r\n\r\n"), "0\r\n\r\n");
  EXPECT_FALSE(stream->send("too late"));
  client.send("GET /now HTTP/1.1\r\nHost: h\r\n\r\n");
  EXPECT_EQ(status_of(client.read_response()), 200u);
}

TEST_F(ConnectionLifeTest, AnHttp10StreamEndsWithTheConnection) {
  start_holding();
  RawClient client(server->port());
  client.send("GET / HTTP/1.0\r\n\r\n");
  auto stream = take_held()->respond_stream({.content_type = "text/plain"});
  stream->send("abc");
  stream->end();
  std::string response = client.read_all();
  EXPECT_EQ(header_of(response, "Transfer-Encoding"), "");
  EXPECT_EQ(body_of(response), "abc");
}

TEST_F(ConnectionLifeTest, AStreamThatIsDroppedIsCutAndNotEnded) {
  start_holding();
  RawClient client(server->port());
  client.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
  auto stream = take_held()->respond_stream({.content_type = "text/plain"});
  stream->send("abc");
  stream.reset();
  EXPECT_FALSE(client.read_all().ends_with("0\r\n\r\n"));
}

TEST_F(ConnectionLifeTest, AStreamsQueueIsBounded) {
  start_holding({.max_stream_queue_bytes = 100'000});
  RawClient client(server->port());
  client.shrink_receive_buffer();
  client.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
  auto stream = take_held()->respond_stream({.content_type = "text/plain"});
  std::string piece(10'000, 'x');
  std::size_t sent = 0;
  while (sent < (std::size_t{64} << 20) && stream->send(piece))
    sent += piece.size();
  // The kernel's buffers and one queue, then the client is dropped.
  EXPECT_LT(sent, std::size_t{64} << 20);
  EXPECT_TRUE(eventually([&] { return server->open_connections() == 0; }));
}

TEST_F(ConnectionLifeTest, AStreamsPieceMayBeLargerThanItsQueue) {
  start_holding({.max_stream_queue_bytes = 100'000});
  RawClient client(server->port());
  client.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
  auto stream = take_held()->respond_stream({.content_type = "text/plain"});
  std::string piece(std::size_t{3} << 20, 'x');
  EXPECT_TRUE(stream->send(piece));
  stream->end();
  EXPECT_NE(client.read_until("\r\n0\r\n\r\n").find("300000\r\n" + piece + "\r\n0\r\n\r\n"), std::string::npos);
}

TEST_F(ConnectionLifeTest, ALargePieceForAReaderThatDoesNotReadIsDropped) {
  start_holding({.write_timeout = milliseconds(100), .max_stream_queue_bytes = 100'000});
  RawClient client(server->port());
  client.shrink_receive_buffer();
  client.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
  auto stream = take_held()->respond_stream({.content_type = "text/plain"});
  std::string piece(std::size_t{8} << 20, 'x');
  EXPECT_TRUE(stream->send(piece));
  EXPECT_TRUE(eventually([&] { return !stream->send(piece); }));
  EXPECT_TRUE(eventually([&] { return server->open_connections() == 0; }));
}

TEST_F(ConnectionLifeTest, AStreamKnowsWhenItsClientHasGone) {
  start_holding();
  RawClient client(server->port());
  client.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
  auto responder = take_held();
  std::atomic<bool> gone = false;
  responder->on_disconnect([&] { gone = true; });
  auto stream = responder->respond_stream({.content_type = "text/plain"});
  client.read_until("\r\n\r\n");
  client.close();
  EXPECT_TRUE(eventually([&] { return gone.load(); }));
  EXPECT_FALSE(stream->send("x"));
}

TEST_F(ConnectionLifeTest, DrainEndsIdleConnectionsAndLetsBusyOnesFinish) {
  start_holding();
  RawClient idle(server->port());
  idle.send("GET /now HTTP/1.1\r\nHost: h\r\n\r\n");
  EXPECT_EQ(status_of(idle.read_response()), 200u);
  RawClient busy(server->port());
  busy.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
  auto responder = take_held();
  server->drain();
  EXPECT_EQ(idle.read_all(), "");
  EXPECT_TRUE(busy.stays_silent(milliseconds(50)));
  responder->respond({.body = "{}"});
  std::string response = busy.read_all();
  EXPECT_EQ(status_of(response), 200u);
  EXPECT_EQ(header_of(response, "Connection"), "close");
  EXPECT_FALSE(RawClient(server->port()).send("x") && still_serves());
  busy.close();
  idle.close();
  EXPECT_TRUE(eventually([&] { return server->open_connections() == 0; }));
}

TEST_F(ConnectionLifeTest, AServerCanEndWhileItsConnectionsAreOpen) {
  start_holding();
  RawClient idle(server->port());
  RawClient busy(server->port());
  busy.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
  auto responder = take_held();
  server.reset();
  EXPECT_EQ(idle.read_all(), "");
  EXPECT_EQ(busy.read_all(), "");
  responder->respond({});
}

TEST(ServerLife, AServerOnWorkersThatNeverRanLeavesNothingBehind) {
  Runtime runtime(1);
  auto server = Server::listen(runtime, {.listen_address = "127.0.0.1:0"}, [](auto, auto) {});
  ASSERT_TRUE(server);
  RawClient waiting((*server)->port());
}

TEST(ServerLife, AnAnswerAfterTheEndOfEverythingIsHarmless) {
  std::shared_ptr<Responder> late;
  std::mutex mutex;
  Runtime runtime(1);
  {
    auto server = Server::listen(runtime, {.listen_address = "127.0.0.1:0"}, [&](auto, auto responder) {
      std::lock_guard lock(mutex);
      late = std::move(responder);
    });
    ASSERT_TRUE(server);
    runtime.start();
    RawClient client((*server)->port());
    client.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
    ASSERT_TRUE(eventually([&] {
      std::lock_guard lock(mutex);
      return late != nullptr;
    }));
    runtime.stop();
  }
  late->respond({});
  late.reset();
}

}  // namespace
}  // namespace hive::net::http::test
