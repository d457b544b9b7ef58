#include <atomic>
#include <functional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gateway/upstreams/session_fixture.h"
#include "net/http/scripted_server.h"

/// Servers over HTTP that say what a test wants them to say, mostly what they must not.
namespace hive::upstreams {
namespace {

using test::FakeCaller;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

struct Seen {
  std::string head;  ///< of the request
  std::string body;
  [[nodiscard]] bool is(std::string_view method) const {
    return body.find("\"method\":\"" + std::string(method) + "\"") != std::string::npos;
  }
  [[nodiscard]] std::string id() const {
    std::size_t at = body.find("\"id\":");
    return at == std::string::npos ? "" : body.substr(at + 5, body.find_first_of(",}", at) - at - 5);
  }
  [[nodiscard]] bool verb(std::string_view name) const { return head.starts_with(std::string(name) + " "); }
};

std::string result(const Seen& seen, const std::string& raw) {
  return R"({"jsonrpc":"2.0","id":)" + seen.id() + R"(,"result":)" + raw + "}";
}
std::string event(const std::string& data, const std::string& id = "") {
  return (id.empty() ? "" : "id: " + id + "\n") + "data: " + data + "\n\n";
}
void begin_stream(hive::test::Peer& peer) {
  peer.send("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n");
}

/// Handles one exchange; false to end the connection.
using Handler = std::function<bool(hive::test::Peer&, const Seen&)>;

class HttpSessionTest : public test::SessionTest {
 protected:
  ~HttpSessionTest() override { connection_.reset(); }  // before the server that it speaks with

  void serve(Handler handler) {
    server_ = std::make_unique<hive::test::ScriptedServer>([this, handler](hive::test::Peer& peer) {
      while (true) {
        std::string text = peer.read_request();
        if (text.empty()) return;
        std::size_t end = text.find("\r\n\r\n");
        Seen seen{.head = text.substr(0, end), .body = text.substr(end + 4)};
        {
          std::lock_guard lock(seen_mutex_);
          seen_.push_back(seen);
        }
        if (!handler(peer, seen)) return;
      }
    });
  }
  /// Answers the handshake of a legacy server with a session; the rest is the handler's.
  void serve_legacy(Handler handler) {
    serve([handler](hive::test::Peer& peer, const Seen& seen) {
      if (seen.is("server/discover")) return peer.answer(400, R"({"error":"what is that?"})");
      if (seen.is("initialize")) {
        return peer.answer(
            200,
            result(seen,
                   R"({"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"x","version":"1"}})"),
            "Content-Type: application/json\r\nMcp-Session-Id: s-1\r\n");
      }
      if (seen.is("notifications/initialized")) return peer.answer(202, "");
      if (seen.verb("DELETE")) return peer.answer(204, "");
      if (seen.verb("GET") && seen.head.find("Last-Event-ID") == std::string::npos) return peer.answer(405, "");
      return handler(peer, seen);
    });
  }
  void serve_modern(Handler handler) {
    serve([handler](hive::test::Peer& peer, const Seen& seen) {
      if (seen.is("server/discover")) {
        return peer.answer(
            200, result(seen, R"({"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{}})"));
      }
      return handler(peer, seen);
    });
  }
  ConnectionOptions options(const std::string& path = "/mcp") {
    ConnectionOptions options = options_for(TransportKind::http);
    options.url = server_->url(path);
    return options;
  }
  std::vector<Seen> seen() {
    std::lock_guard lock(seen_mutex_);
    return seen_;
  }

  std::mutex seen_mutex_;
  std::vector<Seen> seen_;
  std::unique_ptr<hive::test::ScriptedServer> server_;
};

TEST_F(HttpSessionTest, SendsTokenHeadersSessionAndRevisionWithEveryRequest) {
  serve_legacy([](hive::test::Peer& peer, const Seen& seen) { return peer.answer(200, result(seen, "{}")); });
  ConnectionOptions with = options();
  with.auth_token = "s3cret";
  with.headers = {{"X-Team", "blue"}, {"Accept", "text/html"}, {"Mcp-Session-Id", "forged"}};
  open_ready(std::move(with));
  EXPECT_EQ(call("tools/list", "{}").kind, ReplyKind::result);
  Seen last = seen().back();
  EXPECT_THAT(last.head, AllOf(HasSubstr("Authorization: Bearer s3cret"), HasSubstr("X-Team: blue"),
                               HasSubstr("Mcp-Session-Id: s-1"), HasSubstr("MCP-Protocol-Version: 2025-11-25"),
                               HasSubstr("Accept: application/json, text/event-stream"), Not(HasSubstr("text/html")),
                               Not(HasSubstr("forged"))));
  EXPECT_THAT(last.body, HasSubstr(R"("id":"h-)"));
}

TEST_F(HttpSessionTest, EndsTheSessionAtTheServer) {
  std::atomic<bool> deleted = false;
  serve_legacy([](hive::test::Peer& peer, const Seen& seen) { return peer.answer(200, result(seen, "{}")); });
  open_ready(options());
  connection_->close();
  for (int tries = 0; tries < 1000 && !deleted; ++tries) {
    for (const Seen& one : seen())
      deleted = deleted || (one.verb("DELETE") && one.head.find("Mcp-Session-Id: s-1") != std::string::npos);
    std::unique_lock lock(mutex_);
    if (!deleted) changed_.wait_for(lock, std::chrono::milliseconds(10));
  }
  EXPECT_TRUE(deleted);
}

TEST_F(HttpSessionTest, MirrorsAModernRequestIntoHeadersAndPutsItsContextIntoMeta) {
  serve_modern([](hive::test::Peer& peer, const Seen& seen) { return peer.answer(200, result(seen, "{}")); });
  ConnectionOptions with = options();
  with.listen = false;
  open_ready(std::move(with));
  auto caller = std::make_shared<FakeCaller>(R"({"elicitation":{}})");
  caller->progress = true;
  caller->level = "warning";
  call("tools/call", R"({"name":"größe","arguments":{},"_meta":{"traceparent":"00-1","progressToken":"client's"}})",
       caller);
  Seen last = seen().back();
  EXPECT_THAT(last.head, AllOf(HasSubstr("MCP-Protocol-Version: 2026-07-28"), HasSubstr("Mcp-Method: tools/call"),
                               HasSubstr("Mcp-Name: =?base64?Z3LDtsOfZQ==?=")));
  EXPECT_THAT(last.body,
              AllOf(HasSubstr(R"("io.modelcontextprotocol/clientCapabilities":{"elicitation":{}})"),
                    HasSubstr(R"("io.modelcontextprotocol/logLevel":"warning")"), HasSubstr(R"("traceparent":"00-1")"),
                    HasSubstr(R"("progressToken":"h-)"), Not(HasSubstr("client's"))));
}

TEST_F(HttpSessionTest, CancelsAModernRequestByClosingItsStream) {
  auto closed = std::make_shared<std::atomic<bool>>(false);
  serve_modern([closed](hive::test::Peer& peer, const Seen& seen) {
    begin_stream(peer);
    peer.send(event(R"({"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":1,"progressToken":)" +
                    seen.id() + "}}"));
    peer.wait_for_close();
    *closed = true;
    return false;
  });
  open_ready(options());
  auto caller = std::make_shared<FakeCaller>();
  caller->progress = true;
  auto slow = send("tools/call", R"({"name":"x"})", caller);
  ASSERT_TRUE(caller->wait_told(1));
  connection_->cancel(slow->ticket, "enough");
  EXPECT_EQ(slow->wait().kind, ReplyKind::unconfirmed);
  for (int tries = 0; tries < 1000 && !*closed; ++tries) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, std::chrono::milliseconds(10));
  }
  EXPECT_TRUE(*closed);
  for (const Seen& one : seen())
    EXPECT_FALSE(one.is("notifications/cancelled"));
}

TEST_F(HttpSessionTest, SaysThatTheCredentialsAreRefused) {
  serve([](hive::test::Peer& peer, const Seen&) { return peer.answer(401, "no"); });
  ConnectionOptions with = options();
  with.auth_token = "s3cret";
  open(std::move(with));
  Error error = wait_closed();
  EXPECT_EQ(error.code, ErrorCode::permission_denied);
  EXPECT_THAT(error.message, AllOf(HasSubstr("401"), HasSubstr("auth_token"), Not(HasSubstr("s3cret"))));
}

TEST_F(HttpSessionTest, SaysThatNobodyIsThere) {
  ConnectionOptions nobody = options_for(TransportKind::http);
  nobody.url = "http://127.0.0.1:1/mcp?key=s3cret";
  open(std::move(nobody));
  Error error = wait_closed();
  EXPECT_EQ(error.code, ErrorCode::unavailable);
  EXPECT_THAT(error.message, AllOf(HasSubstr("127.0.0.1:1"), HasSubstr("refused"), Not(HasSubstr("s3cret"))));
}

TEST_F(HttpSessionTest, FollowsNoRedirect) {
  serve([](hive::test::Peer& peer, const Seen&) { return peer.answer(307, "", "Location: http://127.0.0.1:1/\r\n"); });
  ConnectionOptions with = options();
  with.era = EraPreference::legacy;
  open(std::move(with));
  EXPECT_THAT(wait_closed().message, HasSubstr("redirect"));
}

TEST_F(HttpSessionTest, TellsThatTheServerForgotTheSessionAndThatTheRequestWasNotDone) {
  serve_legacy([](hive::test::Peer& peer, const Seen&) { return peer.answer(404, "no such session"); });
  open_ready(options());
  Reply reply = call("tools/list", "{}");
  EXPECT_EQ(reply.kind, ReplyKind::not_sent);
  EXPECT_EQ(reply.reason, "upstream_session_gone");
  EXPECT_EQ(wait_closed().code, ErrorCode::not_found);
}

TEST_F(HttpSessionTest, TellsModernErrorsFromTheirStatus) {
  serve_modern([](hive::test::Peer& peer, const Seen& seen) {
    if (seen.is("a"))
      return peer.answer(
          400, R"({"jsonrpc":"2.0","id":)" + seen.id() + R"(,"error":{"code":-32021,"message":"m","data":{"x":1}}})");
    if (seen.is("b")) return peer.answer(400, R"({"jsonrpc":"2.0","error":{"code":-32020,"message":"without id"}})");
    if (seen.is("c")) return peer.answer(502, "<html>bad gateway</html>", "Content-Type: text/html\r\n");
    if (seen.is("d")) return peer.answer(200, "{}");
    return peer.answer(202, "");
  });
  open_ready(options());
  EXPECT_THAT(call("a", "{}").body, AllOf(HasSubstr("-32021"), HasSubstr(R"("data":{"x":1})")));
  Reply without_id = call("b", "{}");
  EXPECT_EQ(without_id.kind, ReplyKind::error);
  EXPECT_THAT(without_id.body, HasSubstr("without id"));
  Reply proxy = call("c", "{}");
  EXPECT_EQ(proxy.kind, ReplyKind::lost);
  EXPECT_EQ(proxy.reason, "upstream_http_502");
  EXPECT_EQ(call("d", "{}").reason, "upstream_answer_invalid");
  EXPECT_EQ(call("e", "{}").reason, "upstream_answer_invalid");
  EXPECT_FALSE(is_closed());
}

TEST_F(HttpSessionTest, ResumesABrokenStreamFromTheLastEvent) {
  std::string id;
  serve_legacy([&id](hive::test::Peer& peer, const Seen& seen) {
    begin_stream(peer);
    if (seen.verb("POST")) {
      id = seen.id();
      peer.send("retry: 100\n" + event("", "p-1") + event(R"({"jsonrpc":"2.0","method":"notifications/one"})", "p-2"));
      return false;
    }
    EXPECT_THAT(seen.head, HasSubstr("Last-Event-ID: p-2"));
    peer.send(event(R"({"jsonrpc":"2.0","id":)" + id + R"(,"result":{"resumed":true}})", "p-3"));
    return false;
  });
  open_ready(options());
  EXPECT_THAT(call("tools/list", "{}").body, HasSubstr("resumed"));
  EXPECT_TRUE(wait_notification("notifications/one"));
}

TEST_F(HttpSessionTest, GivesUpAStreamThatIsNeverResumed) {
  serve_legacy([](hive::test::Peer& peer, const Seen& seen) {
    if (seen.verb("GET")) return peer.answer(404, "");
    begin_stream(peer);
    peer.send("retry: 100\n" + event("", "p-1"));
    return false;
  });
  open_ready(options());
  Reply reply = call("tools/list", "{}");
  EXPECT_EQ(reply.kind, ReplyKind::lost);
  EXPECT_THAT(reply.detail, HasSubstr("404"));
}

TEST_F(HttpSessionTest, DoesNotWaitForAStreamThatEndedWithoutAnswerAndCannotBeResumed) {
  serve_legacy([](hive::test::Peer& peer, const Seen&) {
    begin_stream(peer);
    peer.send(": nothing\n\n");
    return false;
  });
  open_ready(options());
  EXPECT_EQ(call("tools/list", "{}").kind, ReplyKind::lost);
  EXPECT_FALSE(is_closed());
}

TEST_F(HttpSessionTest, BoundsWhatOneAnswerMayHold) {
  serve_legacy([](hive::test::Peer& peer, const Seen& seen) {
    std::string piece(65536, 'x');
    if (seen.is("stream")) {
      begin_stream(peer);
      peer.send("data: ");
    } else {
      peer.send("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n\"");
    }
    while (peer.send(piece)) {
    }
    return false;
  });
  open_ready(options());
  EXPECT_EQ(call("stream", "{}").reason, "upstream_answer_too_large");
  EXPECT_EQ(call("body", "{}").reason, "upstream_answer_too_large");
  EXPECT_FALSE(is_closed()) << "one bad answer is not the end of the session";
}

TEST_F(HttpSessionTest, ToldNothingMoreOfARequestOnceItsResultHasCome) {
  serve_legacy([](hive::test::Peer& peer, const Seen& seen) {
    begin_stream(peer);
    std::string progress =
        R"({"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":1,"progressToken":)" + seen.id() +
        "}}";
    peer.send(event(progress) + event(result(seen, "{}")) + event(progress) + event(result(seen, R"({"twice":1})")));
    return false;
  });
  open_ready(options());
  auto caller = std::make_shared<FakeCaller>();
  caller->progress = true;
  EXPECT_EQ(call("tools/call", "{}", caller).body, "{}");
  EXPECT_EQ(call("tools/call", "{}", std::make_shared<FakeCaller>()).body, "{}");
  EXPECT_EQ(caller->told().size(), 1U);
}

TEST_F(HttpSessionTest, AsksTheCallerOnWhoseStreamTheQuestionCame) {
  std::atomic<int> waiting = 0;
  std::mutex mutex;
  std::condition_variable answered;
  std::vector<std::string> answers;
  serve_legacy([&](hive::test::Peer& peer, const Seen& seen) {
    if (!seen.is("tools/call")) {
      std::lock_guard lock(mutex);
      answers.push_back(seen.body);
      answered.notify_all();
      return peer.answer(202, "");
    }
    // Both questions are asked while both requests are open.
    ++waiting;
    std::unique_lock lock(mutex);
    answered.notify_all();
    answered.wait_for(lock, test::patience, [&] { return waiting >= 2; });
    lock.unlock();
    std::string number = seen.body.find("first") != std::string::npos ? "1" : "2";
    begin_stream(peer);
    peer.send(event(R"({"jsonrpc":"2.0","id":)" + number + R"(,"method":"elicitation/create","params":{"n":)" + number +
                    "}}"));
    lock.lock();
    answered.wait_for(lock, test::patience, [&] { return answers.size() >= 2; });
    lock.unlock();
    peer.send(event(result(seen, "{}")));
    return false;
  });
  open_ready(options());
  auto alice = std::make_shared<FakeCaller>(R"({"elicitation":{}})", "alice");
  auto bob = std::make_shared<FakeCaller>(R"({"elicitation":{}})", "bob");
  alice->answer = R"({"who":"alice"})";
  bob->answer = R"({"who":"bob"})";
  auto first = send("tools/call", R"({"name":"first"})", alice);
  auto second = send("tools/call", R"({"name":"second"})", bob);
  EXPECT_EQ(first->wait().kind, ReplyKind::result);
  EXPECT_EQ(second->wait().kind, ReplyKind::result);
  ASSERT_EQ(alice->asked().size(), 1U);
  EXPECT_EQ(alice->asked()[0].second, R"({"n":1})");
  ASSERT_EQ(bob->asked().size(), 1U);
  std::lock_guard lock(mutex);
  for (const std::string& answer : answers) {
    bool is_first = answer.find("\"id\":1,") != std::string::npos;
    EXPECT_THAT(answer, HasSubstr(is_first ? "alice" : "bob"));
  }
}

TEST_F(HttpSessionTest, FallsBackToTheOlderTransportAsTheSpecificationSays) {
  auto stream = std::make_shared<std::atomic<hive::test::Peer*>>(nullptr);
  serve([stream](hive::test::Peer& peer, const Seen& seen) {
    if (seen.verb("GET")) {
      begin_stream(peer);
      *stream = &peer;
      peer.send("event: endpoint\ndata: /message?sessionId=1\n\n");
      peer.wait_for_close();
      *stream = nullptr;
      return false;
    }
    if (seen.head.starts_with("POST /message?sessionId=1 ")) {
      peer.answer(202, "");
      if (seen.is("initialize")) {
        stream->load()->send(event(result(seen, R"({"protocolVersion":"2024-11-05","capabilities":{}})")));
      } else if (seen.is("tools/list")) {
        stream->load()->send(event(result(seen, R"({"old":true})")));
      }
      return true;
    }
    return peer.answer(404, "Cannot POST");
  });
  EXPECT_EQ(open_ready(options("/sse")).revision, mcp::Revision::v2024_11_05);
  EXPECT_THAT(call("tools/list", "{}").body, HasSubstr("old"));
  connection_.reset();
}

TEST_F(HttpSessionTest, SendsNothingToAnEndpointOfAnotherOrigin) {
  for (const char* endpoint : {"http://127.0.0.1:1/message", "//evil.example/message", "https://127.0.0.1/message",
                               "http://user@127.0.0.1/x", "http://[bad", "ftp://127.0.0.1/x"}) {
    serve([endpoint](hive::test::Peer& peer, const Seen&) {
      begin_stream(peer);
      peer.send("event: endpoint\ndata: " + std::string(endpoint) + "\n\n");
      peer.wait_for_close();
      return false;
    });
    {
      std::lock_guard lock(mutex_);
      closed_.reset();
    }
    ConnectionOptions with = options("/sse");
    with.transport = TransportKind::sse;
    with.auth_token = "s3cret";
    open(std::move(with));
    Error error = wait_closed();
    EXPECT_THAT(error.message, testing::AnyOf(HasSubstr("another origin"), HasSubstr("no URL"))) << endpoint;
    connection_.reset();
    server_.reset();
  }
}

TEST_F(HttpSessionTest, SaysThatAUrlIsNoEventStream) {
  serve([](hive::test::Peer& peer, const Seen&) { return peer.answer(200, "<html>", "Content-Type: text/html\r\n"); });
  ConnectionOptions with = options("/sse");
  with.transport = TransportKind::sse;
  open(std::move(with));
  Error error = wait_closed();
  EXPECT_EQ(error.code, ErrorCode::invalid_argument);
  EXPECT_THAT(error.message, HasSubstr("no HTTP+SSE server"));
}

TEST_F(HttpSessionTest, NoticesThatAServerWithASessionHangs) {
  serve_legacy([](hive::test::Peer& peer, const Seen&) {
    peer.wait_for_close();
    return false;
  });
  ConnectionOptions with = options();
  with.ping_interval = std::chrono::milliseconds(100);
  with.ping_timeout = std::chrono::milliseconds(200);
  open_ready(std::move(with));
  EXPECT_THAT(wait_closed().message, HasSubstr("ping"));
}

TEST_F(HttpSessionTest, AsksWhetherAServerLivesWhenARequestHasReachedNobody) {
  std::atomic<bool> is_broken = false;
  serve_legacy([&is_broken](hive::test::Peer& peer, const Seen& seen) {
    return !is_broken && peer.answer(200, result(seen, "{}"));
  });
  ConnectionOptions with = options();
  with.ping_interval = std::chrono::hours(1);
  open_ready(std::move(with));
  EXPECT_EQ(call("tools/list", "{}").kind, ReplyKind::result);
  is_broken = true;
  EXPECT_NE(call("tools/list", "{}").kind, ReplyKind::result);
  EXPECT_THAT(wait_closed().message, HasSubstr("ping"));
}

TEST_F(HttpSessionTest, GoesOnWithAServerThatDroppedOneRequest) {
  serve_legacy([](hive::test::Peer& peer, const Seen& seen) {
    return !seen.is("tools/list") && peer.answer(200, result(seen, "{}"));
  });
  ConnectionOptions with = options();
  with.ping_interval = std::chrono::hours(1);
  open_ready(std::move(with));
  EXPECT_EQ(call("tools/list", "{}").kind, ReplyKind::lost);
  EXPECT_EQ(call("prompts/list", "{}").kind, ReplyKind::result);
}

TEST_F(HttpSessionTest, StaysModernWhenTheConfigurationSaysSo) {
  serve([](hive::test::Peer& peer, const Seen&) { return peer.answer(400, "what?"); });
  ConnectionOptions with = options();
  with.era = EraPreference::modern;
  open(std::move(with));
  Error error = wait_closed();
  EXPECT_EQ(error.code, ErrorCode::invalid_argument);
  EXPECT_THAT(error.message, HasSubstr("2026-07-28"));
}

TEST_F(HttpSessionTest, NamesTheRevisionsOfAServerThatSharesNone) {
  serve([](hive::test::Peer& peer, const Seen& seen) {
    return peer.answer(400, R"({"jsonrpc":"2.0","id":)" + seen.id() +
                                R"(,"error":{"code":-32022,"message":"no","data":{"supported":["2030-01-01"]}}})");
  });
  open(options());
  EXPECT_THAT(wait_closed().message, HasSubstr("2030-01-01"));
  EXPECT_EQ(seen().size(), 1U) << "such a server must not be asked to initialize";
}

}  // namespace
}  // namespace hive::upstreams
