// What a hostile or broken client may send, and what it must never reach: the handler.

#include <atomic>
#include <vector>

#include "net/http/server_fixture.h"

namespace hive::net::http::test {
namespace {

class HostileInputTest : public ServerTest {
 protected:
  void start_counting(ServerOptions options = {}) {
    start(std::move(options), [this](auto request, auto responder) {
      ++handled;
      echo(request, responder);
    });
  }

  unsigned status_for(std::string_view bytes) {
    std::string response = exchange(bytes);
    if (status_of(response) >= 400) {
      EXPECT_EQ(header_of(response, "Content-Type"), "application/problem+json") << response;
      EXPECT_EQ(header_of(response, "Connection"), "close") << response;
      EXPECT_NE(body_of(response).find("\"detail\":\""), std::string_view::npos) << response;
      EXPECT_NE(body_of(response).find("\"request_id\":\"h-"), std::string_view::npos) << response;
    }
    return status_of(response);
  }

  std::atomic<int> handled = 0;
};

TEST_F(HostileInputTest, AmbiguousBodyLengthsAreRefused) {
  start_counting();
  for (const char* fields : {
           "Content-Length: 5\r\nContent-Length: 6\r\n",
           "Content-Length: 5\r\nContent-Length: 5\r\n",
           "Content-Length: 5, 5\r\n",
           "Content-Length: +5\r\n",
           "Content-Length: -5\r\n",
           "Content-Length: 0x5\r\n",
           "Content-Length: 5 5\r\n",
           "Content-Length:\r\n",
           "Content-Length: 99999999999999999999999999\r\n",
           "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
           "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n",
           "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
       }) {
    EXPECT_EQ(status_for("POST / HTTP/1.1\r\nHost: h\r\n" + std::string(fields) + "\r\nhello"), 400u) << fields;
  }
  EXPECT_EQ(handled, 0);
}

TEST_F(HostileInputTest, OnlyPlainChunkedIsATransferEncoding) {
  start_counting();
  for (const char* value : {"gzip", "gzip, chunked", "chunked, identity", "identity", "xchunked", "chunked;q=1"}) {
    unsigned status =
        status_for("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: " + std::string(value) + "\r\n\r\n0\r\n\r\n");
    EXPECT_TRUE(status == 400 || status == 501) << value << " " << status;
  }
  EXPECT_EQ(status_for("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"), 400u);
  EXPECT_EQ(handled, 0);
}

TEST_F(HostileInputTest, BrokenChunksAreRefused) {
  start_counting();
  for (const char* body : {"x\r\n", "-1\r\na\r\n", "0x3\r\nabc\r\n0\r\n\r\n", "3\r\nabcd\r\n0\r\n\r\n", "3\nabc\n0\n\n",
                           "3\r\nabc0\r\n\r\n", "ffffffffffffffff1\r\na", " 3\r\nabc\r\n0\r\n\r\n"}) {
    unsigned status =
        status_for("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n" + std::string(body));
    EXPECT_TRUE(status == 400 || status == 413) << body << " " << status;
  }
  EXPECT_EQ(handled, 0);
}

TEST_F(HostileInputTest, EndlessChunkFramingIsRefused) {
  start_counting();
  std::string head = "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n";
  EXPECT_EQ(status_for(head + "3;" + std::string(100'000, 'x')), 400u);
  EXPECT_EQ(status_for(head + "3;" + std::string(1'000, 'x') + "\r\nabc\r\n0\r\n\r\n"), 400u);
  EXPECT_EQ(status_for(head + "0\r\nX: " + std::string(100'000, 'x')), 400u);
  EXPECT_EQ(handled, 0);
}

TEST_F(HostileInputTest, BrokenLinesAreRefusedAsSoonAsTheyArrive) {
  start_counting();
  using namespace std::string_literals;
  for (const std::string& bytes : {
           "GET / HTTP/1.1\nHost: h\n\n"s,
           "GET / HTTP/1.1\r\nHost: h\n\r\n"s,
           "GET / HTTP/1.1\r\nHost: h\r\nX: a\rb\r\n\r\n"s,
           "GET / HTTP/1.1\r\nHost: h\r\nX: a\r\n folded\r\n\r\n"s,
           "GET / HTTP/1.1\r\n Host: h\r\n\r\n"s,
           "GET / HTTP/1.1\r\nHost: h\r\nX: a\0b\r\n\r\n"s,
           "GET / HTTP/1.1\r\nHost: h\r\nX: a\x01\r\n\r\n"s,
           "GET / HTTP/1.1\r\nHost : h\r\n\r\n"s,
           "GET / HTTP/1.1\r\nHost: h\r\n: x\r\n\r\n"s,
           "GET / HTTP/1.1\r\nHost: h\r\nX(y): x\r\n\r\n"s,
           "GET / HTTP/1.1\r\nHost: h\r\nX\xc3\xa9: x\r\n\r\n"s,
           "GET / HTTP/1.1\r\nHost: h\r\nnocolon\r\n\r\n"s,
           "\r\n\r\n\r\nGET / HTTP/1.1\r\nHost: h\r\n\r\n"s,
           " GET / HTTP/1.1\r\nHost: h\r\n\r\n"s,
           "G@T / HTTP/1.1\r\nHost: h\r\n\r\n"s,
           "GET  / HTTP/1.1\r\nHost: h\r\n\r\n"s,
           "GET /\r\n\r\n"s,
           "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"s,
       }) {
    unsigned status = status_for(bytes);
    EXPECT_TRUE(status == 400 || status == 505) << bytes << " " << status;
  }
  EXPECT_EQ(handled, 0);
}

TEST_F(HostileInputTest, TheHostHeaderStandsExactlyOnce) {
  start_counting();
  EXPECT_EQ(status_for("GET / HTTP/1.1\r\n\r\n"), 400u);
  EXPECT_EQ(status_for("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"), 400u);
  EXPECT_EQ(status_for("GET / HTTP/1.1\r\nHost: a\r\nhost: a\r\n\r\n"), 400u);
  EXPECT_EQ(handled, 0);
}

TEST_F(HostileInputTest, OtherVersionsAreRefused) {
  start_counting();
  EXPECT_EQ(status_for("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), 505u);
  for (const char* version : {"HTTP/2.0", "HTTP/0.9", "HTTP/1.2", "HTTP/11", "http/1.1", "HTTP/1.1x"})
    EXPECT_EQ(status_for("GET / " + std::string(version) + "\r\nHost: h\r\n\r\n"), 505u) << version;
  EXPECT_EQ(handled, 0);
}

TEST_F(HostileInputTest, TargetsThatCanBeReadTwoWaysAreRefused) {
  start_counting();
  for (const char* target : {"/a%00b", "/%ff", "/%c0%af",  "/..",     "/a/../b",   "/a/%2e%2e/b",    "/./a", "/a%2fb",
                             "/a%2Fb", "/%",   "/%4",      "/%zz",    "/a#b",      "/\xc3\xa9",      "/%0a", "/%7f",
                             "a",      "*",    "ftp://h/", "http://", "http:///x", "http://user@h/", "h:443"}) {
    EXPECT_EQ(status_for("GET " + std::string(target) + " HTTP/1.1\r\nHost: h\r\n\r\n"), 400u) << target;
  }
  EXPECT_EQ(status_for("CONNECT h:443 HTTP/1.1\r\nHost: h\r\n\r\n"), 400u);
  EXPECT_EQ(handled, 0);
}

TEST_F(HostileInputTest, HeadsAreBounded) {
  start_counting({.max_header_bytes = 4096});
  EXPECT_EQ(status_for("GET / HTTP/1.1\r\nHost: h\r\nX: " + std::string(5000, 'x') + "\r\n\r\n"), 431u);
  EXPECT_EQ(status_for("GET /" + std::string(100'000, 'x')), 431u);
  std::string many = "GET / HTTP/1.1\r\nHost: h\r\n";
  for (int i = 0; i < 101; ++i)
    many += "A: b\r\n";
  EXPECT_EQ(status_for(many + "\r\n"), 431u);
  EXPECT_EQ(handled, 0);
}

TEST_F(HostileInputTest, TargetsAreBounded) {
  start_counting();
  EXPECT_EQ(status_for("GET /" + std::string(9000, 'x') + " HTTP/1.1\r\nHost: h\r\n\r\n"), 414u);
  EXPECT_EQ(handled, 0);
}

TEST_F(HostileInputTest, AThousandRangesAreNoMoreThanAHeader) {
  start_counting();
  std::string ranges = "bytes=0-";
  for (int i = 0; i < 1000; ++i)
    ranges += ",0-";
  EXPECT_EQ(status_for("GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\nRange: " + ranges + "\r\n\r\n"), 200u);
}

TEST_F(HostileInputTest, AnUnknownExpectationIsRefused) {
  start_counting();
  EXPECT_EQ(status_for("POST / HTTP/1.1\r\nHost: h\r\nExpect: 200-ok\r\nContent-Length: 0\r\n\r\n"), 417u);
  EXPECT_EQ(handled, 0);
}

TEST_F(HostileInputTest, ARequestHiddenInARefusedOneIsNotServed) {
  start_counting();
  std::string response = exchange(
      "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n"
      "0\r\n\r\nGET /hidden HTTP/1.1\r\nHost: h\r\n\r\n");
  EXPECT_EQ(status_of(response), 400u);
  EXPECT_EQ(response.find("HTTP/1.1", 8), std::string::npos);
  EXPECT_EQ(handled, 0);
}

TEST_F(HostileInputTest, AnnouncedBodiesCostNothingUntilTheyArrive) {
  start_counting({.max_body_bytes = std::size_t{64} << 20, .max_buffered_body_bytes = 1 << 20});
  std::vector<std::unique_ptr<RawClient>> clients;
  for (int i = 0; i < 50; ++i) {
    clients.push_back(std::make_unique<RawClient>(server->port()));
    clients.back()->send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 67108864\r\n\r\nx");
  }
  EXPECT_EQ(status_for("POST / HTTP/1.1\r\nHost: h\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok"), 200u);
}

TEST_F(HostileInputTest, BodiesThatArriveTogetherShareABudget) {
  start_counting({.max_body_bytes = 1 << 20, .max_buffered_body_bytes = 100'000});
  // Which of the two is over the budget depends on whose bytes the server reads first; the other one is served.
  std::string refused;
  ASSERT_TRUE(eventually([&] {
    RawClient first(server->port());
    first.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 80001\r\n\r\n" + std::string(80'000, 'x'));
    refused = exchange("POST / HTTP/1.1\r\nHost: h\r\nConnection: close\r\nContent-Length: 80000\r\n\r\n" +
                       std::string(80'000, 'x'));
    if (status_of(refused) != 429) return false;
    first.send("x");
    return status_of(first.read_response()) == 200;
  }));
  EXPECT_NE(refused.find("overloaded"), std::string::npos);
  EXPECT_EQ(status_for("POST / HTTP/1.1\r\nHost: h\r\nConnection: close\r\nContent-Length: 80000\r\n\r\n" +
                       std::string(80'000, 'x')),
            200u);
}

TEST_F(HostileInputTest, OneSourceCannotUseUpTheBodiesBudgetOfOthers) {
  start_counting({.max_body_bytes = 10'000, .max_buffered_body_bytes = 80'000});
  std::vector<std::unique_ptr<RawClient>> greedy;
  for (int i = 0; i < 20; ++i) {
    greedy.push_back(std::make_unique<RawClient>(server->port()));
    greedy.back()->send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 9000\r\n\r\n" + std::string(6'000, 'x'));
  }
  int refused = 0;
  for (std::size_t i = 1; i < greedy.size(); ++i) {
    if (greedy[i]->stays_silent(std::chrono::milliseconds(i < 2 ? 200 : 20))) continue;
    EXPECT_EQ(status_of(greedy[i]->read_all()), 429u);
    ++refused;
  }
  EXPECT_GE(refused, 18);  // one of them has its place
  std::string whole = "POST / HTTP/1.1\r\nHost: h\r\nConnection: close\r\nContent-Length: 9000\r\n\r\n";
  whole += std::string(9'000, 'y');
  RawClient other(server->port(), "127.0.0.1", "127.0.0.2");
  other.send(whole);
  EXPECT_EQ(status_of(other.read_all()), 200u);
}

TEST_F(HostileInputTest, AllSourcesTogetherShareTheBodiesBudget) {
  start_counting({.max_body_bytes = 10'000, .max_buffered_body_bytes = 20'000});
  RawClient first(server->port());
  RawClient second(server->port(), "127.0.0.1", "127.0.0.2");
  for (RawClient* client : {&first, &second})
    client->send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 9501\r\n\r\n" + std::string(9'500, 'x'));
  EXPECT_TRUE(eventually([&] {
    RawClient third(server->port(), "127.0.0.1", "127.0.0.3");
    third.send("POST / HTTP/1.1\r\nHost: h\r\nConnection: close\r\nContent-Length: 2000\r\n\r\n" +
               std::string(2'000, 'z'));
    return status_of(third.read_all()) == 503;
  }));
}

}  // namespace
}  // namespace hive::net::http::test
