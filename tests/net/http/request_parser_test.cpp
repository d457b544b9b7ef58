#include "net/http/request_parser.h"

#include <random>

#include <gtest/gtest.h>

namespace hive::net::http {
namespace {

constexpr std::string_view chunked_request =
    "\r\nPOST /p?q=1 HTTP/1.1\r\nHost: h\r\nX-Two: a, b\r\nTransfer-Encoding: Chunked\r\n\r\n"
    "4\r\nwxyz\r\n1;n=v\r\n!\r\n0\r\nTrailer: x\r\n\r\nNEXT";

/// Offers the bytes in pieces of random sizes, as a connection does; returns how many were used.
std::size_t feed_in_pieces(RequestParser& parser, std::string_view bytes, std::mt19937& random) {
  std::size_t used = 0;
  std::size_t offered = 0;
  while (offered < bytes.size() && parser.state() < RequestParser::State::complete) {
    offered = std::min(bytes.size(), offered + 1 + random() % 7);
    used += parser.feed(bytes.substr(used, offered - used));
  }
  return used;
}

TEST(RequestParser, DoesNotCareHowTheBytesAreCut) {
  std::mt19937 random(7);
  RequestParser parser{ParserLimits{}};
  for (int i = 0; i < 200; ++i) {
    std::size_t used = feed_in_pieces(parser, chunked_request, random);
    ASSERT_EQ(parser.state(), RequestParser::State::complete);
    EXPECT_EQ(chunked_request.substr(used), "NEXT");
    EXPECT_TRUE(parser.keeps_alive());
    auto request = parser.take();
    EXPECT_EQ(request->method, "POST");
    EXPECT_EQ(request->path, "/p");
    EXPECT_EQ(request->query, "q=1");
    EXPECT_EQ(request->header("x-two"), "a, b");
    EXPECT_EQ(request->header("trailer"), std::nullopt);
    EXPECT_EQ(request->body, "wxyz!");
    parser.reset();
  }
}

TEST(RequestParser, ABrokenRequestIsRefusedHoweverTheBytesAreCut) {
  std::mt19937 random(7);
  RequestParser parser{ParserLimits{}};
  for (std::string_view bytes :
       {"GET / HTTP/1.1\r\nHost: h\nX: y\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabcX\r\n0\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\na"}) {
    for (int i = 0; i < 50; ++i) {
      feed_in_pieces(parser, bytes, random);
      EXPECT_EQ(parser.state(), RequestParser::State::failed) << bytes;
      EXPECT_EQ(parser.refusal().status, 400u);
      parser.reset();
    }
  }
}

TEST(RequestParser, RandomDamageNeverHurts) {
  std::mt19937 random(11);
  RequestParser parser{ParserLimits{.max_header_bytes = 512, .max_target_bytes = 128, .max_body_bytes = 256}};
  for (int i = 0; i < 20'000; ++i) {
    std::string bytes(chunked_request);
    for (unsigned n = 1 + random() % 4; n > 0; --n) {
      std::size_t at = random() % bytes.size();
      switch (random() % 3) {
        case 0:
          bytes[at] = static_cast<char>(random());
          break;
        case 1:
          bytes.erase(at, 1 + random() % 5);
          break;
        default:
          bytes.insert(at, bytes.substr(random() % bytes.size(), random() % 20));
      }
      if (bytes.empty()) bytes = "x";
    }
    std::size_t used = feed_in_pieces(parser, bytes, random);
    EXPECT_LE(used, bytes.size());
    EXPECT_LE(parser.body_size(), 256u);
    if (parser.state() == RequestParser::State::complete) {
      auto request = parser.take();
      EXPECT_EQ(request->path.find('\0'), std::string::npos);
    }
    parser.reset();
  }
}

TEST(RequestParser, ConnectionTokensAreRead) {
  auto keeps_alive = [](std::string_view version, std::string_view fields) {
    RequestParser parser{ParserLimits{}};
    parser.feed("GET / " + std::string(version) + "\r\nHost: h\r\n" + std::string(fields) + "\r\n");
    EXPECT_EQ(parser.state(), RequestParser::State::complete);
    return parser.keeps_alive();
  };
  EXPECT_TRUE(keeps_alive("HTTP/1.1", ""));
  EXPECT_FALSE(keeps_alive("HTTP/1.1", "Connection: CLOSE\r\n"));
  EXPECT_FALSE(keeps_alive("HTTP/1.1", "Connection: te, close\r\n"));
  EXPECT_FALSE(keeps_alive("HTTP/1.1", "Connection: keep-alive\r\nConnection: close\r\n"));
  EXPECT_FALSE(keeps_alive("HTTP/1.0", ""));
  EXPECT_TRUE(keeps_alive("HTTP/1.0", "Connection: Keep-Alive\r\n"));
}

TEST(RequestParser, TheAbsoluteFormReplacesTheHost) {
  RequestParser parser{ParserLimits{}};
  parser.feed("GET http://real/ HTTP/1.1\r\nHost: other\r\n\r\n");
  ASSERT_EQ(parser.state(), RequestParser::State::complete);
  EXPECT_EQ(parser.take()->header("host"), "real");
}

}  // namespace
}  // namespace hive::net::http
