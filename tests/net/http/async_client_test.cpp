#include "net/http/async_client.h"

#include <condition_variable>
#include <csignal>
#include <filesystem>
#include <mutex>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "net/http/scripted_server.h"

namespace hive::net::http {
namespace {

using testing::AllOf;
using testing::HasSubstr;

/// Waits for something that other threads bring about.
class Signal {
 public:
  void set() {
    std::lock_guard lock(mutex_);
    ++count_;
    changed_.notify_all();
  }
  [[nodiscard]] bool wait(int times = 1) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(20), [&] { return count_ >= times; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int count_ = 0;
};

class AsyncClientTest : public testing::Test {
 protected:
  AsyncClientTest() {
    for (const char* name :
         {"http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY", "no_proxy", "NO_PROXY"})
      ::unsetenv(name);
    std::signal(SIGPIPE, SIG_IGN);
    runtime_.start();
    make_client({});
  }
  ~AsyncClientTest() override {
    client_.reset();
    runtime_.stop();
  }

  void make_client(AsyncClientLimits limits) {
    auto made = AsyncClient::create(limits);
    ASSERT_TRUE(made) << made.error().message;
    client_ = *std::move(made);
  }

  static RequestOptions get(const std::string& url) {
    RequestOptions request;
    request.url = url;
    request.timeout = std::chrono::seconds(10);
    return request;
  }

  Result<ClientResponse> perform(RequestOptions request) {
    Result<ClientResponse> got = fail(ErrorCode::internal, "no answer");
    Signal ended;
    client_->send(worker(), std::move(request),
                  {.on_head = {}, .on_data = {}, .done = [&](Result<ClientResponse> result) {
                     EXPECT_TRUE(worker().runs_here());
                     got = std::move(result);
                     ended.set();
                   }});
    EXPECT_TRUE(ended.wait());
    return got;
  }

  Worker& worker() { return runtime_.worker(0); }

  Runtime runtime_{1};
  std::unique_ptr<AsyncClient> client_;
};

TEST_F(AsyncClientTest, BringsStatusHeadersAndBodyToTheWorker) {
  std::string seen;
  test::ScriptedServer server([&](test::Peer& peer) {
    seen = peer.read_request();
    peer.answer(404, "gone", "Mcp-Session-Id: s1\r\n");
  });
  RequestOptions request = get(server.url("/x"));
  request.method = "POST";
  request.body = "{}";
  request.headers = {{"Accept", "application/json"}};
  auto response = perform(request);
  ASSERT_TRUE(response) << response.error().message;
  EXPECT_EQ(response->status, 404U);
  EXPECT_EQ(response->header("mcp-session-id"), "s1");
  EXPECT_EQ(response->body, "gone");
  EXPECT_THAT(seen,
              AllOf(HasSubstr("POST /x HTTP/1.1"), HasSubstr("Accept: application/json"), HasSubstr("\r\n\r\n{}")));
  EXPECT_EQ(client_->transfers(), 0U);
}

TEST_F(AsyncClientTest, RefusesWhatCannotBeSentThroughTheSameWay) {
  for (const char* url : {"", "ftp://x/", "http://user:secret@x/", "not a url"}) {
    auto response = perform(get(url));
    ASSERT_FALSE(response) << url;
    EXPECT_EQ(response.error().code, ErrorCode::invalid_argument);
    EXPECT_THAT(response.error().message, testing::Not(HasSubstr("secret")));
  }
  RequestOptions request = get("http://127.0.0.1:1/");
  request.headers = {{"Authorization", "a\r\nb: c"}};
  EXPECT_EQ(perform(request).error().code, ErrorCode::invalid_argument);
}

TEST_F(AsyncClientTest, SaysThatNothingListens) {
  auto response = perform(get("http://127.0.0.1:1/"));
  ASSERT_FALSE(response);
  EXPECT_EQ(response.error().code, ErrorCode::unavailable);
  EXPECT_THAT(response.error().message, HasSubstr("127.0.0.1:1: connection refused"));
}

TEST_F(AsyncClientTest, DoesNotFollowARedirect) {
  test::ScriptedServer server([](test::Peer& peer) {
    peer.read_request();
    peer.answer(302, "", "Location: http://127.0.0.1:1/\r\n");
  });
  auto response = perform(get(server.url("/")));
  ASSERT_TRUE(response);
  EXPECT_EQ(response->status, 302U);
}

TEST_F(AsyncClientTest, CarriesManyTransfersAtOnceOnOneThread) {
  constexpr int count = 100;
  std::mutex mutex;
  std::condition_variable everybody_is_here;
  int here = 0;
  // Nobody is answered before all have asked: only a client that does them at once gets through.
  test::ScriptedServer server([&](test::Peer& peer) {
    if (peer.read_request().empty()) return;
    std::unique_lock lock(mutex);
    if (++here == count) everybody_is_here.notify_all();
    everybody_is_here.wait_for(lock, std::chrono::seconds(20), [&] { return here >= count; });
    lock.unlock();
    peer.answer(200, "{}");
  });
  Signal ended;
  std::atomic<int> good = 0;
  for (int i = 0; i < count; ++i) {
    RequestOptions request = get(server.url("/"));
    request.timeout = std::chrono::seconds(30);
    client_->send(worker(), std::move(request),
                  {.on_head = {}, .on_data = {}, .done = [&](Result<ClientResponse> result) {
                     good += result && result->status == 200 ? 1 : 0;
                     ended.set();
                   }});
  }
  EXPECT_TRUE(ended.wait(count));
  EXPECT_EQ(good, count);
}

TEST_F(AsyncClientTest, UsesAConnectionAgain) {
  test::ScriptedServer server([](test::Peer& peer) {
    while (!peer.read_request().empty())
      peer.answer(200, "{}");
  });
  for (int i = 0; i < 20; ++i)
    ASSERT_TRUE(perform(get(server.url("/"))));
  EXPECT_EQ(server.accepted(), 1);
}

TEST_F(AsyncClientTest, HandsOverAStreamInOrderHeadFirst) {
  Signal first_seen;
  test::ScriptedServer server([&](test::Peer& peer) {
    peer.read_request();
    peer.send("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nfirst\r\n");
    EXPECT_TRUE(first_seen.wait()) << "the piece must arrive while the stream goes on";
    peer.send("6\r\nsecond\r\n0\r\n\r\n");
  });
  std::string log;
  Signal ended;
  client_->send(worker(), get(server.url("/")),
                {.on_head = [&](const ClientResponse& head) { log += std::to_string(head.status) + ":"; },
                 .on_data =
                     [&](std::string_view piece) {
                       log += piece;
                       first_seen.set();
                     },
                 .done =
                     [&](Result<ClientResponse> result) {
                       EXPECT_TRUE(result && result->body.empty());
                       ended.set();
                     }});
  ASSERT_TRUE(ended.wait());
  EXPECT_EQ(log, "200:firstsecond");
}

TEST_F(AsyncClientTest, ReportsTheHeadOfAnAnswerWithoutBody) {
  test::ScriptedServer server([](test::Peer& peer) {
    peer.read_request();
    peer.answer(202, "");
  });
  unsigned status = 0;
  Signal ended;
  client_->send(worker(), get(server.url("/")),
                {.on_head = [&](const ClientResponse& head) { status = head.status; },
                 .on_data = [](std::string_view) { ADD_FAILURE(); },
                 .done = [&](Result<ClientResponse>) { ended.set(); }});
  ASSERT_TRUE(ended.wait());
  EXPECT_EQ(status, 202U);
}

TEST_F(AsyncClientTest, MakesAServerWaitWhoseReaderIsSlow) {
  constexpr std::size_t window = 64 << 10;
  make_client({.window_bytes = window});
  constexpr std::size_t total = std::size_t{64} << 20;
  std::atomic<std::size_t> sent = 0;
  Signal blocked;
  test::ScriptedServer server([&](test::Peer& peer) {
    peer.read_request();
    peer.send("HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(total) + "\r\n\r\n");
    timeval patience{.tv_sec = 1, .tv_usec = 0};
    ::setsockopt(peer.fd(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    std::string piece(65536, 'x');
    bool told = false;
    while (sent < total) {
      long count = ::send(peer.fd(), piece.data(), piece.size(), MSG_NOSIGNAL);
      if (count > 0) {
        sent += static_cast<std::size_t>(count);
      } else if (told) {
        return;
      } else {
        told = true;  // a second without taking anything: the client holds back
        blocked.set();
        timeval longer{.tv_sec = 20, .tv_usec = 0};
        ::setsockopt(peer.fd(), SOL_SOCKET, SO_SNDTIMEO, &longer, sizeof longer);
      }
    }
  });
  std::size_t received = 0;
  Signal ended;
  RequestOptions request = get(server.url("/"));
  request.timeout = std::chrono::seconds(60);
  request.max_response_bytes = total;
  bool is_first = true;
  std::size_t sent_at_block = 0;
  client_->send(worker(), std::move(request),
                {.on_head = {},
                 .on_data =
                     [&](std::string_view piece) {
                       if (std::exchange(is_first, false)) {
                         EXPECT_TRUE(blocked.wait()) << "the server could send all although nobody read";
                         sent_at_block = sent;
                       }
                       received += piece.size();
                     },
                 .done =
                     [&](Result<ClientResponse> result) {
                       EXPECT_TRUE(result) << result.error().message;
                       ended.set();
                     }});
  ASSERT_TRUE(ended.wait());
  EXPECT_LT(sent_at_block, total / 2) << "beyond the window only the kernel's buffers hold something";
  EXPECT_EQ(received, total);
}

TEST_F(AsyncClientTest, StopsReadingAnAnswerThatIsTooLarge) {
  test::ScriptedServer server([](test::Peer& peer) {
    peer.read_request();
    peer.send("HTTP/1.1 200 OK\r\n\r\n");
    while (peer.send("0123456789")) {
    }
  });
  RequestOptions request = get(server.url("/"));
  request.max_response_bytes = 100'000;
  auto response = perform(request);
  ASSERT_FALSE(response);
  EXPECT_EQ(response.error().code, ErrorCode::resource_exhausted);
}

TEST_F(AsyncClientTest, ClosesTheConnectionOfACancelledRequest) {
  Signal asked;
  Signal closed;
  test::ScriptedServer server([&](test::Peer& peer) {
    peer.read_request();
    asked.set();
    peer.wait_for_close();
    closed.set();
  });
  Signal ended;
  Result<ClientResponse> got;
  std::uint64_t id = client_->send(worker(), get(server.url("/")),
                                   {.on_head = {}, .on_data = {}, .done = [&](Result<ClientResponse> result) {
                                      got = std::move(result);
                                      ended.set();
                                    }});
  ASSERT_TRUE(asked.wait());
  client_->cancel(id);
  client_->cancel(id + 1000);
  ASSERT_TRUE(ended.wait());
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().code, ErrorCode::cancelled);
  EXPECT_TRUE(closed.wait());
}

TEST_F(AsyncClientTest, ReportsNoDataOnceItWasCancelledOnTheWorker) {
  test::ScriptedServer server([](test::Peer& peer) {
    peer.read_request();
    peer.send("HTTP/1.1 200 OK\r\n\r\n");
    while (peer.send(std::string(10'000, 'x'))) {
    }
  });
  Signal ended;
  int pieces = 0;
  std::atomic<std::uint64_t> id = 0;
  worker().post([&] {
    id = client_->send(worker(), get(server.url("/")),
                       {.on_head = {},
                        .on_data =
                            [&](std::string_view) {
                              ++pieces;
                              client_->cancel(id);
                            },
                        .done = [&](Result<ClientResponse>) { ended.set(); }});
  });
  ASSERT_TRUE(ended.wait());
  EXPECT_EQ(pieces, 1);
}

TEST_F(AsyncClientTest, EndsWhatIsLeftWhenItGoes) {
  Signal asked;
  test::ScriptedServer server([&](test::Peer& peer) {
    peer.read_request();
    asked.set();
    peer.wait_for_close();
  });
  Signal ended;
  client_->send(worker(), get(server.url("/")),
                {.on_head = {}, .on_data = {}, .done = [&](Result<ClientResponse> result) {
                   EXPECT_FALSE(result);
                   ended.set();
                 }});
  ASSERT_TRUE(asked.wait());
  client_.reset();
  EXPECT_TRUE(ended.wait());
}

TEST_F(AsyncClientTest, EndsAtOnceWhatIsSentThroughAReferenceAfterItHasGone) {
  AsyncClientReference reference = client_->reference();
  client_.reset();
  Signal ended;
  std::uint64_t id = reference.send(worker(), get("http://127.0.0.1:1/"),
                                    {.on_head = {}, .on_data = {}, .done = [&](Result<ClientResponse> result) {
                                       ASSERT_FALSE(result);
                                       EXPECT_EQ(result.error().code, ErrorCode::cancelled);
                                       ended.set();
                                     }});
  reference.cancel(id);
  EXPECT_TRUE(ended.wait());
}

TEST_F(AsyncClientTest, RefusesMoreTransfersThanAllowed) {
  make_client({.max_transfers = 1});
  Signal asked;
  test::ScriptedServer server([&](test::Peer& peer) {
    peer.read_request();
    asked.set();
    peer.wait_for_close();
  });
  client_->send(worker(), get(server.url("/")), {});
  ASSERT_TRUE(asked.wait());
  auto refused = perform(get(server.url("/")));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::resource_exhausted);
  client_.reset();
}

TEST_F(AsyncClientTest, TrustsTheGivenCertificateAlone) {
  test::TestCertificate certificate = test::make_certificate("IP:127.0.0.1");
  test::ScriptedServer server(
      [](test::Peer& peer) {
        peer.read_request();
        peer.answer(200, "{}");
      },
      &certificate);
  auto untrusted = perform(get(server.url("/")));
  ASSERT_FALSE(untrusted);
  EXPECT_EQ(untrusted.error().code, ErrorCode::permission_denied);

  std::string path = testing::TempDir() + "hive_async_client_ca.pem";
  ASSERT_TRUE(write_file_atomically(path, certificate.pem(), 0600));
  RequestOptions request = get(server.url("/"));
  request.ca_certificate_path = path;
  EXPECT_TRUE(perform(request));
  std::filesystem::remove(path);

  request.ca_certificate_path = "/nonexistent/ca.pem";
  auto refused = perform(request);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::invalid_argument);
  EXPECT_THAT(refused.error().message, HasSubstr("/nonexistent/ca.pem"));
}

TEST_F(AsyncClientTest, UsesNoProxyForALoopbackHost) {
  test::ScriptedServer server([](test::Peer& peer) {
    peer.read_request();
    peer.answer(200, "{}");
  });
  ::setenv("http_proxy", "http://127.0.0.1:1", 1);
  auto response = perform(get(server.url("/")));
  ::unsetenv("http_proxy");
  EXPECT_TRUE(response);
}

}  // namespace
}  // namespace hive::net::http
