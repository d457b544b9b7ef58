#include "gateway/surfaces/mcp/stdio_endpoint.h"

#include <condition_variable>
#include <csignal>
#include <future>
#include <map>
#include <mutex>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include "base/unique_fd.h"

namespace hive::mcp_surface {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

/// A core that keeps each request, until the test answers it.
class FakeCore final : public Core {
 public:
  struct Arrived {
    std::string text;
    Client client;
    std::shared_ptr<Reply> reply;
    std::string cancelled;  ///< the reason
    bool is_modern = false;
  };

  void apply(std::shared_ptr<const config::GatewayConfig>) override {}
  void fleet_changed() override {}
  void close() override {}
  [[nodiscard]] std::optional<std::string> mirroring_schema(const policy::Principal&, std::string_view) const override {
    return std::nullopt;
  }
  std::shared_ptr<Running> request(net::Worker&, Client client, std::string text,
                                   std::shared_ptr<Reply> reply) override {
    return arrive(std::move(client), std::move(text), std::move(reply), true);
  }
  std::shared_ptr<Session> open_session(const Client&) override {
    std::lock_guard lock(mutex_);
    ++sessions;
    return refuses_sessions ? nullptr : std::make_shared<FakeSession>(*this);
  }

  /// The request with this text in it; waits for it.
  std::shared_ptr<Arrived> wait_for(std::string_view text) {
    std::unique_lock lock(mutex_);
    std::shared_ptr<Arrived> found;
    EXPECT_TRUE(changed_.wait_for(lock, std::chrono::seconds(20), [&] {
      for (const auto& arrived : arrived_)
        if (arrived->text.contains(text)) found = arrived;
      return found != nullptr;
    })) << text;
    return found;
  }
  /// Waits until something has become true.
  bool eventually(const std::function<bool()>& condition) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(20), condition);
  }

  // Guarded by mutex_ while the endpoint runs.
  int sessions = 0;
  bool refuses_sessions = false;
  mcp::Revision revision = mcp::Revision::v2025_11_25;
  std::vector<std::string> accepted;
  bool session_is_closed = false;
  std::function<void(std::string)> unsolicited;

 private:
  class FakeRunning final : public Running {
   public:
    FakeRunning(FakeCore& core, std::weak_ptr<Arrived> arrived) : core_(core), arrived_(std::move(arrived)) {}
    void cancel(std::string_view reason) override {
      auto arrived = arrived_.lock();
      if (arrived == nullptr) return;
      std::lock_guard lock(core_.mutex_);
      arrived->cancelled = reason;
      arrived->reply = nullptr;
      core_.changed_.notify_all();
    }

   private:
    FakeCore& core_;
    std::weak_ptr<Arrived> arrived_;
  };

  class FakeSession final : public Session {
   public:
    explicit FakeSession(FakeCore& core) : core_(core) {}
    [[nodiscard]] const std::string& id() const override { return id_; }
    [[nodiscard]] const std::string& owner() const override { return id_; }
    [[nodiscard]] mcp::Revision revision() const override { return core_.revision; }
    [[nodiscard]] bool is_initialized() const override { return true; }
    std::shared_ptr<Running> request(net::Worker&, Client client, std::string text,
                                     std::shared_ptr<Reply> reply) override {
      return core_.arrive(std::move(client), std::move(text), std::move(reply), false);
    }
    void accept(const Client&, std::string text) override {
      std::lock_guard lock(core_.mutex_);
      core_.accepted.push_back(std::move(text));
      core_.changed_.notify_all();
    }
    void set_unsolicited(std::function<void(std::string)> sink) override { core_.unsolicited = std::move(sink); }
    void close() override {
      std::lock_guard lock(core_.mutex_);
      core_.session_is_closed = true;
      for (const auto& arrived : core_.arrived_)
        if (!arrived->is_modern) arrived->reply = nullptr;
      core_.changed_.notify_all();
    }

   private:
    FakeCore& core_;
    std::string id_ = "session";
  };

  std::shared_ptr<Running> arrive(Client client, std::string text, std::shared_ptr<Reply> reply, bool is_modern) {
    auto arrived = std::make_shared<Arrived>(std::move(text), std::move(client), std::move(reply), "", is_modern);
    std::lock_guard lock(mutex_);
    arrived_.push_back(arrived);
    changed_.notify_all();
    return std::make_shared<FakeRunning>(*this, arrived);
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::shared_ptr<Arrived>> arrived_;  // guarded by mutex_
};

struct Pipe {
  Pipe() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) std::abort();
    out.reset(ends[0]);
    in.reset(ends[1]);
  }
  UniqueFd out;
  UniqueFd in;
};

class StdioEndpointTest : public testing::Test {
 protected:
  StdioEndpointTest() {
    std::signal(SIGPIPE, SIG_IGN);
    runtime_.start();
  }
  ~StdioEndpointTest() override {
    endpoint_.reset();
    runtime_.stop();
  }

  void start(StdioEndpoint::Options options = {}) {
    options.in_fd = to_.out.get();
    options.out_fd = from_.in.get();
    options.principal = [] { return policy::Principal{.name = "stdio", .role = policy::Role::operator_}; };
    options.ended = [this] { ended_.set_value(); };
    endpoint_ = StdioEndpoint::start(core_, runtime_.worker(0), std::move(options));
  }
  void send_text(std::string_view text) {
    ASSERT_EQ(::write(to_.in.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }
  void send(const std::string& line) { send_text(line + "\n"); }
  std::string read_line() {
    while (!buffer_.contains('\n')) {
      pollfd wait{from_.out.get(), POLLIN, 0};
      if (::poll(&wait, 1, 20'000) <= 0) {
        ADD_FAILURE() << "no line came";
        return "";
      }
      char piece[4096];
      ssize_t count = ::read(from_.out.get(), piece, sizeof piece);
      if (count <= 0) return "";
      buffer_.append(piece, static_cast<std::size_t>(count));
    }
    std::string line = buffer_.substr(0, buffer_.find('\n'));
    buffer_.erase(0, line.size() + 1);
    return line;
  }
  bool has_ended() { return ended_future_.wait_for(std::chrono::seconds(20)) == std::future_status::ready; }

  net::Runtime runtime_{1};
  FakeCore core_;
  Pipe to_;
  Pipe from_;
  std::promise<void> ended_;
  std::future<void> ended_future_ = ended_.get_future();
  std::unique_ptr<StdioEndpoint> endpoint_;
  std::string buffer_;
};

std::string legacy(const std::string& id, const std::string& method) {
  return R"({"jsonrpc":"2.0","id":)" + id + R"(,"method":")" + method + R"("})";
}
std::string modern(const std::string& id, const std::string& method) {
  return R"({"jsonrpc":"2.0","id":)" + id + R"(,"method":")" + method +
         R"(","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}})";
}

TEST_F(StdioEndpointTest, EveryMessageSaysItsOwnEra) {
  start();
  send(legacy("1", "initialize"));
  send(modern("1", "tools/list"));
  send(legacy("2", "tools/list"));
  send(legacy("3", "server/discover"));
  EXPECT_FALSE(core_.wait_for(legacy("1", "initialize"))->is_modern);
  EXPECT_TRUE(core_.wait_for(modern("1", "tools/list"))->is_modern);
  EXPECT_TRUE(core_.wait_for(legacy("3", "server/discover"))->is_modern);
  auto list = core_.wait_for(legacy("2", "tools/list"));
  EXPECT_FALSE(list->is_modern);
  EXPECT_EQ(core_.sessions, 1);
  EXPECT_EQ(list->client.principal.name, "stdio");
  EXPECT_EQ(list->client.surface, calls::Surface::mcp_stdio);
  EXPECT_FALSE(list->client.request_id.empty());
}

TEST_F(StdioEndpointTest, MessagesBecomeLines) {
  start();
  send_text(modern("\"a\"", "tools/call") + "\r\n\r\n");
  auto call = core_.wait_for("tools/call");
  call->reply->send("{\"progress\":\n1}");
  call->reply->finish(R"({"id":"a"})", 200);
  EXPECT_EQ(read_line(), "{\"progress\": 1}");
  EXPECT_EQ(read_line(), R"({"id":"a"})");
}

TEST_F(StdioEndpointTest, WhatIsNoMessageIsRefusedAndTheNextLineServed) {
  start();
  send("hello");
  EXPECT_THAT(read_line(), AllOf(HasSubstr("-32700"), Not(HasSubstr("\"id\""))));
  send("\xef\xbb\xbf" + legacy("1", "ping"));
  EXPECT_THAT(read_line(), HasSubstr("-32700"));
  send("[" + legacy("1", "ping") + "]");
  EXPECT_THAT(read_line(), HasSubstr("-32600"));
  auto huge = std::async(std::launch::async, [this] {
    std::string piece(std::size_t{1} << 16, 'x');
    for (int i = 0; i < 80; ++i)
      send_text(piece);
    send("");
  });
  EXPECT_THAT(read_line(), AllOf(HasSubstr("-32700"), HasSubstr("longer than 4194304 bytes")));
  huge.wait();
  send(modern("9", "ping"));
  core_.wait_for(modern("9", "ping"))->reply->finish("done", 200);
  EXPECT_EQ(read_line(), "done");
}

TEST_F(StdioEndpointTest, AModernRequestIsWithdrawnByItsIdAndOthersAreTheSessionsAffair) {
  start();
  send(legacy("5", "initialize"));
  send(modern("5", "tools/call"));
  auto call = core_.wait_for("tools/call");
  send(R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"5"}})");
  send(R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":5}})");
  EXPECT_TRUE(core_.eventually([&] { return !call->cancelled.empty(); }));
  send(R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":5}})");
  EXPECT_TRUE(core_.eventually([&] { return core_.accepted.size() == 2; }));
  send(modern("5", "ping"));
  core_.wait_for("\"ping\"")->reply->finish("pong", 200);
  EXPECT_EQ(read_line(), "pong");
}

TEST_F(StdioEndpointTest, AnIdThatIsInUseIsRefusedWithoutHarmToTheFirst) {
  start();
  send(modern("7", "tools/call"));
  auto call = core_.wait_for("tools/call");
  send(modern("7", "ping"));
  EXPECT_THAT(read_line(), AllOf(HasSubstr("-32600"), HasSubstr("\"id\":7")));
  call->reply->finish("first", 200);
  EXPECT_EQ(read_line(), "first");
}

TEST_F(StdioEndpointTest, ABatchIsAnsweredAtOnceWithWhatItsRequestsGot) {
  core_.revision = mcp::Revision::v2025_03_26;
  start();
  send(legacy("1", "initialize"));
  core_.wait_for("initialize")->reply->finish("{}", 200);
  EXPECT_EQ(read_line(), "{}");
  send("[" + legacy("2", "a") + "," + legacy("3", "b") + R"(,{"jsonrpc":"2.0","method":"n"},5])");
  core_.wait_for("\"b\"")->reply->finish("{\"id\":3}", 200);
  core_.wait_for("\"a\"")->reply->finish("{\"id\":2}", 200);
  EXPECT_THAT(read_line(), AllOf(testing::StartsWith("[{"), testing::EndsWith("}]"), HasSubstr("{\"id\":2}"),
                                 HasSubstr("{\"id\":3}"), HasSubstr("-32600")));
  EXPECT_TRUE(core_.eventually([&] { return core_.accepted.size() == 1; }));
}

TEST_F(StdioEndpointTest, WhatBelongsToNoRequestIsALineToo) {
  start();
  send(legacy("1", "initialize"));
  core_.wait_for("initialize");
  core_.unsolicited("news");
  EXPECT_EQ(read_line(), "news");
}

TEST_F(StdioEndpointTest, NoSessionIsAnAnswer) {
  core_.refuses_sessions = true;
  start();
  send(legacy("1", "initialize"));
  EXPECT_THAT(read_line(), AllOf(HasSubstr("\"id\":1"), HasSubstr("too many sessions")));
}

TEST_F(StdioEndpointTest, TheEndOfTheInputWaitsForAnswers) {
  start();
  send_text(legacy("1", "tools/call"));
  to_.in.reset();
  auto call = core_.wait_for("tools/call");
  EXPECT_EQ(ended_future_.wait_for(std::chrono::milliseconds(20)), std::future_status::timeout);
  call->reply->finish("last", 200);
  EXPECT_TRUE(has_ended());
  EXPECT_EQ(read_line(), "last");
  EXPECT_TRUE(core_.eventually([&] { return core_.session_is_closed; }));
}

TEST_F(StdioEndpointTest, TheEndOfTheInputDoesNotWaitLongNorForSubscriptions) {
  start({.last_answers = std::chrono::milliseconds(40)});
  send(modern("1", "subscriptions/listen"));
  send(modern("2", "tools/call"));
  auto listening = core_.wait_for("subscriptions/listen");
  auto call = core_.wait_for("tools/call");
  to_.in.reset();
  EXPECT_TRUE(has_ended());
  EXPECT_EQ(listening->cancelled, "the client has gone");
  EXPECT_EQ(call->cancelled, "the client has gone");
}

TEST_F(StdioEndpointTest, AClientThatDoesNotReadIsGivenUp) {
  start({.max_unread_bytes = std::size_t{1} << 20});
  send(modern("1", "tools/call"));
  auto call = core_.wait_for("tools/call");
  std::shared_ptr<Reply> reply = call->reply;
  for (int i = 0; i < 40; ++i)
    reply->send(std::string(std::size_t{1} << 16, 'x'));
  EXPECT_TRUE(has_ended());
  EXPECT_FALSE(call->cancelled.empty());
}

TEST_F(StdioEndpointTest, AClosedOutputEndsIt) {
  start();
  send(modern("1", "tools/call"));
  from_.out.reset();
  core_.wait_for("tools/call")->reply->finish("nobody hears it", 200);
  EXPECT_TRUE(has_ended());
}

TEST_F(StdioEndpointTest, CanStopWhileTheClientIsSilent) {
  start();
  send(modern("1", "tools/call"));
  auto call = core_.wait_for("tools/call");
  endpoint_.reset();
  EXPECT_EQ(call->cancelled, "the gateway stops");
}

}  // namespace
}  // namespace hive::mcp_surface
