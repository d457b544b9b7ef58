#include "net/http/client.h"

#include <csignal>
#include <filesystem>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "net/http/scripted_server.h"

namespace hive::net::http {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

/// A file that is gone with the test.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& content) {
    char pattern[] = "/tmp/hive_client_test.XXXXXX";
    UniqueFd fd(::mkstemp(pattern));
    path_ = pattern;
    EXPECT_TRUE(write_file_atomically(path_, content, 0600));
  }
  ~TemporaryFile() { std::filesystem::remove(path_); }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

class HttpClientTest : public testing::Test {
 protected:
  // The environment of whoever runs the tests must not redirect them.
  static void SetUpTestSuite() {
    for (const char* name :
         {"http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY", "no_proxy", "NO_PROXY"})
      ::unsetenv(name);
    std::signal(SIGPIPE, SIG_IGN);
  }
};

ClientRequest get(const std::string& url) {
  ClientRequest request;
  request.url = url;
  request.timeout = std::chrono::seconds(10);
  return request;
}

TEST_F(HttpClientTest, ReturnsStatusHeadersInLowerCaseAndBody) {
  test::ScriptedServer server([](test::Peer& peer) {
    peer.read_request();
    peer.answer(404, "gone", "Myrmex-Outcome: denied\r\nX-Empty:\r\n");
  });
  auto response = perform(get(server.url("/x")));
  ASSERT_TRUE(response) << response.error().message;
  EXPECT_EQ(response->status, 404U);
  EXPECT_EQ(response->body, "gone");
  EXPECT_EQ(response->header("myrmex-outcome"), "denied");
  EXPECT_EQ(response->header("x-empty"), "");
  EXPECT_EQ(response->header("absent"), "");
}

TEST_F(HttpClientTest, SendsMethodHeadersAndBodyAsGiven) {
  std::string seen;
  test::ScriptedServer server([&seen](test::Peer& peer) {
    seen = peer.read_request();
    peer.answer(200, "{}");
  });
  ClientRequest request = get(server.url("/api/call"));
  request.method = "POST";
  request.headers = {{"Authorization", "Bearer abc"}, {"X-Empty", ""}};
  request.body = std::string("{\"a\":\"\0\"}", 9);
  ASSERT_TRUE(perform(request));
  EXPECT_THAT(seen, AllOf(HasSubstr("POST /api/call HTTP/1.1\r\n"), HasSubstr("Authorization: Bearer abc\r\n"),
                          HasSubstr("X-Empty:"), Not(HasSubstr("Expect:"))));
  EXPECT_TRUE(seen.ends_with(request.body));
}

TEST_F(HttpClientTest, KeepsTheConnectionForTheNextRequest) {
  test::ScriptedServer server([](test::Peer& peer) {
    while (!peer.read_request().empty())
      peer.answer(200, "{}");
  });
  for (int k = 0; k < 5; ++k)
    ASSERT_TRUE(perform(get(server.url("/"))));
  EXPECT_EQ(server.accepted(), 1);
}

TEST_F(HttpClientTest, DoesNotFollowRedirects) {
  test::ScriptedServer server([](test::Peer& peer) {
    peer.read_request();
    peer.answer(302, "", "Location: http://127.0.0.1:1/\r\n");
  });
  auto response = perform(get(server.url("/")));
  ASSERT_TRUE(response) << response.error().message;
  EXPECT_EQ(response->status, 302U);
}

TEST_F(HttpClientTest, RefusesWhatIsNoHttpUrlWithoutRepeatingIt) {
  for (const char* url : {"ftp://host/s3cret", "file:///etc/passwd", "nonsense s3cret", "https://user:s3cret@host/", "",
                          "gopher://s3cret/"}) {
    auto response = perform(get(url));
    ASSERT_FALSE(response) << url;
    EXPECT_EQ(response.error().code, ErrorCode::invalid_argument) << url;
    EXPECT_THAT(response.error().message, Not(HasSubstr("s3cret")));
  }
}

TEST_F(HttpClientTest, RefusesHeadersThatWouldInjectOthers) {
  ClientRequest request = get("http://127.0.0.1:1/");
  request.headers = {{"Authorization", "Bearer s3cret\r\nX-Injected: 1"}};
  auto response = perform(request);
  ASSERT_FALSE(response);
  EXPECT_EQ(response.error().code, ErrorCode::invalid_argument);
  EXPECT_THAT(response.error().message, AllOf(HasSubstr("Authorization"), Not(HasSubstr("s3cret"))));
}

TEST_F(HttpClientTest, TellsARefusedConnectionFromAnUnknownName) {
  std::string refused_url;
  {
    test::ScriptedServer server([](test::Peer&) {});
    refused_url = server.url("/");
  }
  auto refused = perform(get(refused_url));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::unavailable);
  EXPECT_THAT(refused.error().message, AllOf(HasSubstr("127.0.0.1:"), HasSubstr("refused")));

  auto unknown = perform(get("http://no-such-host.invalid/"));
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code, ErrorCode::unavailable);
  EXPECT_THAT(unknown.error().message, AllOf(HasSubstr("no-such-host.invalid"), HasSubstr("no such host name")));
}

TEST_F(HttpClientTest, SaysThatAnAnswerDidNotComeInTime) {
  test::ScriptedServer server([](test::Peer& peer) {
    peer.read_request();
    peer.wait_for_close();
  });
  ClientRequest request = get(server.url("/"));
  request.timeout = std::chrono::milliseconds(200);
  auto response = perform(request);
  ASSERT_FALSE(response);
  EXPECT_EQ(response.error().code, ErrorCode::timed_out);
  EXPECT_THAT(response.error().message, HasSubstr("200 ms"));
}

TEST_F(HttpClientTest, SaysThatAConnectionClosedWithoutAnAnswerMayHaveActed) {
  test::ScriptedServer server([](test::Peer& peer) { peer.read_request(); });
  auto response = perform(get(server.url("/")));
  ASSERT_FALSE(response);
  EXPECT_EQ(response.error().code, ErrorCode::io);
}

TEST_F(HttpClientTest, ReportsATruncatedBody) {
  test::ScriptedServer server([](test::Peer& peer) {
    peer.read_request();
    peer.send("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf");
  });
  auto response = perform(get(server.url("/")));
  ASSERT_FALSE(response);
  EXPECT_EQ(response.error().code, ErrorCode::io);
}

TEST_F(HttpClientTest, ReportsAnAnswerThatIsNotHttp) {
  test::ScriptedServer server([](test::Peer& peer) { peer.send("SSH-2.0-gateway\r\n"); });
  auto response = perform(get(server.url("/")));
  ASSERT_FALSE(response);
  EXPECT_NE(response.error().code, ErrorCode::timed_out);
  EXPECT_THAT(response.error().message, HasSubstr("127.0.0.1:"));
}

TEST_F(HttpClientTest, StopsReadingAnAnswerThatIsTooLarge) {
  test::ScriptedServer server([](test::Peer& peer) {
    peer.read_request();
    peer.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
    std::string chunk = "10000\r\n" + std::string(65536, 'x') + "\r\n";
    while (peer.send(chunk)) {
    }
  });
  ClientRequest request = get(server.url("/"));
  request.max_response_bytes = 300'000;
  auto response = perform(request);
  ASSERT_FALSE(response);
  EXPECT_EQ(response.error().code, ErrorCode::resource_exhausted);
  EXPECT_THAT(response.error().message, HasSubstr("300000"));
}

TEST_F(HttpClientTest, StopsReadingEndlessHeaders) {
  test::ScriptedServer server([](test::Peer& peer) {
    peer.read_request();
    peer.send("HTTP/1.1 200 OK\r\n");
    while (peer.send("X-More: yes\r\n")) {
    }
  });
  auto response = perform(get(server.url("/")));
  ASSERT_FALSE(response);
  EXPECT_EQ(response.error().code, ErrorCode::resource_exhausted);
}

TEST_F(HttpClientTest, HandsOverAStreamPieceByPiece) {
  test::ScriptedServer server([](test::Peer& peer) {
    peer.read_request();
    peer.send("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nfirst\r\n");
    // Only goes on once the client has seen the first piece and answered on the connection's other side.
    peer.send("6\r\nsecond\r\n0\r\n\r\n");
  });
  ClientRequest request = get(server.url("/"));
  std::string seen;
  unsigned status_at_head = 0;
  request.on_head = [&](const ClientResponse& head) {
    status_at_head = head.status;
    return head.header("content-type") == "text/event-stream";
  };
  request.on_data = [&seen](std::string_view piece) {
    seen += piece;
    return true;
  };
  auto response = perform(request);
  ASSERT_TRUE(response) << response.error().message;
  EXPECT_EQ(status_at_head, 200U);
  EXPECT_EQ(seen, "firstsecond");
  EXPECT_EQ(response->body, "");
}

TEST_F(HttpClientTest, CollectsTheBodyOfAnErrorInsteadOfStreamingIt) {
  test::ScriptedServer server([](test::Peer& peer) {
    peer.read_request();
    peer.answer(403, "no");
  });
  ClientRequest request = get(server.url("/"));
  request.on_head = [](const ClientResponse& head) { return head.status == 200; };
  request.on_data = [](std::string_view) { return true; };
  auto response = perform(request);
  ASSERT_TRUE(response) << response.error().message;
  EXPECT_EQ(response->body, "no");
}

TEST_F(HttpClientTest, EndsAStreamThatIsNotWantedAnyMore) {
  test::ScriptedServer server([](test::Peer& peer) {
    peer.read_request();
    peer.send("HTTP/1.1 200 OK\r\n\r\n");
    while (peer.send("data\n")) {
    }
  });
  ClientRequest request = get(server.url("/"));
  request.on_data = [](std::string_view) { return false; };
  auto response = perform(request);
  ASSERT_FALSE(response);
  EXPECT_EQ(response.error().code, ErrorCode::cancelled);
}

TEST_F(HttpClientTest, ClosesTheConnectionWhenTheRequestIsCancelled) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  UniqueFd read_end(ends[0]);
  UniqueFd write_end(ends[1]);
  std::atomic<bool> saw_close = false;
  {
    test::ScriptedServer server([&](test::Peer& peer) {
      peer.read_request();
      EXPECT_EQ(::write(write_end.get(), "x", 1), 1);
      peer.wait_for_close();
      saw_close = true;
    });
    ClientRequest request = get(server.url("/"));
    request.cancel_fd = read_end.get();
    auto response = perform(request);
    ASSERT_FALSE(response);
    EXPECT_EQ(response.error().code, ErrorCode::cancelled);
    pollfd nothing{};
    for (int tries = 0; tries < 500 && !saw_close; ++tries)
      ::poll(&nothing, 0, 10);
    EXPECT_TRUE(saw_close) << "the server must see the end before the client's process ends";
  }
}

TEST_F(HttpClientTest, SendsNothingThatWasCancelledBefore) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  UniqueFd read_end(ends[0]);
  UniqueFd write_end(ends[1]);
  test::ScriptedServer server([](test::Peer& peer) {
    while (!peer.read_request().empty())
      peer.answer(200, "{}");
  });
  ClientRequest request = get(server.url("/"));
  request.cancel_fd = read_end.get();
  ASSERT_TRUE(perform(request)) << "now a kept connection is ready to send at once";
  ASSERT_EQ(::write(write_end.get(), "x", 1), 1);
  auto response = perform(request);
  ASSERT_FALSE(response);
  EXPECT_EQ(response.error().code, ErrorCode::cancelled);
  EXPECT_THAT(response.error().message, HasSubstr("before it was sent"));
}

TEST_F(HttpClientTest, TrustsTheGivenCertificateAlone) {
  test::TestCertificate certificate = test::make_certificate("DNS:localhost,IP:127.0.0.1");
  test::TestCertificate other = test::make_certificate("DNS:localhost,IP:127.0.0.1");
  test::ScriptedServer server(
      [](test::Peer& peer) {
        peer.read_request();
        peer.answer(200, "{}");
      },
      &certificate);
  TemporaryFile trusted(certificate.pem());
  TemporaryFile untrusted(other.pem());

  ClientRequest request = get(server.url("/"));
  request.ca_certificate_path = trusted.path();
  auto response = perform(request);
  ASSERT_TRUE(response) << response.error().message;
  EXPECT_EQ(response->status, 200U);

  request.ca_certificate_path = untrusted.path();
  auto refused = perform(request);
  ASSERT_FALSE(refused) << "a kept connection must not be used under other rules of trust";
  EXPECT_EQ(refused.error().code, ErrorCode::permission_denied);
  EXPECT_THAT(refused.error().message, AllOf(HasSubstr("certificate of 127.0.0.1:"), HasSubstr("not trusted")));

  request.verify_tls = false;
  EXPECT_TRUE(perform(request));
}

TEST_F(HttpClientTest, NamesACertificateForAnotherHost) {
  test::TestCertificate certificate = test::make_certificate("DNS:elsewhere.example");
  test::ScriptedServer server([](test::Peer& peer) { peer.read_request(); }, &certificate);
  TemporaryFile trusted(certificate.pem());
  ClientRequest request = get(server.url("/", "localhost"));
  request.ca_certificate_path = trusted.path();
  auto refused = perform(request);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::permission_denied);
  EXPECT_THAT(refused.error().message, HasSubstr("host name"));
}

TEST_F(HttpClientTest, NamesAnExpiredCertificate) {
  test::TestCertificate certificate = test::make_certificate("IP:127.0.0.1", -1);
  test::ScriptedServer server([](test::Peer& peer) { peer.read_request(); }, &certificate);
  TemporaryFile trusted(certificate.pem());
  ClientRequest request = get(server.url("/"));
  request.ca_certificate_path = trusted.path();
  auto refused = perform(request);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::permission_denied);
  EXPECT_THAT(refused.error().message, HasSubstr("expired"));
}

TEST_F(HttpClientTest, SaysThatAPlaintextPortIsNoHttpsPort) {
  test::ScriptedServer server([](test::Peer& peer) {
    peer.answer(400, "this is plain HTTP");
    peer.wait_for_close();
  });
  auto response = perform(get("https://127.0.0.1:" + std::to_string(server.port()) + "/"));
  ASSERT_FALSE(response);
  EXPECT_EQ(response.error().code, ErrorCode::unavailable);
  EXPECT_THAT(response.error().message, HasSubstr("TLS"));
}

TEST_F(HttpClientTest, SaysThatATlsHandshakeDidNotComeInTime) {
  test::ScriptedServer server([](test::Peer& peer) { peer.wait_for_close(); });
  ClientRequest request = get("https://127.0.0.1:" + std::to_string(server.port()) + "/");
  request.connect_timeout = std::chrono::milliseconds(200);
  auto response = perform(request);
  ASSERT_FALSE(response);
  EXPECT_EQ(response.error().code, ErrorCode::unavailable);
  EXPECT_THAT(response.error().message, HasSubstr("no TLS handshake within 200 ms"));
}

TEST_F(HttpClientTest, NamesACaFileThatCannotBeUsed) {
  ClientRequest request = get("https://127.0.0.1:1/");
  request.ca_certificate_path = "/nonexistent/ca.pem";
  auto missing = perform(request);
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, ErrorCode::invalid_argument);
  EXPECT_THAT(missing.error().message, HasSubstr("/nonexistent/ca.pem"));

  TemporaryFile nonsense("not a certificate");
  request.ca_certificate_path = nonsense.path();
  auto refused = perform(request);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::invalid_argument);
  EXPECT_THAT(refused.error().message, HasSubstr(nonsense.path()));
}

TEST_F(HttpClientTest, UsesNoProxyForALoopbackHost) {
  test::ScriptedServer server([](test::Peer& peer) {
    peer.read_request();
    peer.answer(200, "{}");
  });
  ::setenv("http_proxy", "http://127.0.0.1:1", 1);
  auto response = perform(get(server.url("/")));
  ::unsetenv("http_proxy");
  EXPECT_TRUE(response);
}

TEST_F(HttpClientTest, UsesTheProxyOfTheEnvironmentForOtherHosts) {
  std::string seen;
  test::ScriptedServer proxy([&seen](test::Peer& peer) {
    seen = peer.read_request();
    peer.answer(200, "{}");
  });
  ::setenv("http_proxy", proxy.url().c_str(), 1);
  auto response = perform(get("http://gateway.example/x"));
  ::unsetenv("http_proxy");
  EXPECT_TRUE(response);
  EXPECT_THAT(seen, HasSubstr("GET http://gateway.example/x HTTP/1.1"));
}

TEST(IsLoopbackHost, KnowsNamesAndAddressesOfThisMachine) {
  for (const char* host : {"localhost", "LOCALHOST", "a.localhost", "127.0.0.1", "127.8.9.10", "::1", "[::1]"})
    EXPECT_TRUE(is_loopback_host(host)) << host;
  for (const char* host : {"", "localhost.evil.com", "127.0.0.1.evil.com", "1270.0.0.1", "10.0.0.1", "notlocalhost",
                           "127.0.0.256", "127.0.0"})
    EXPECT_FALSE(is_loopback_host(host)) << host;
}

}  // namespace
}  // namespace hive::net::http
