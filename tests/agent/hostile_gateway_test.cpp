/// A gateway that means no good, over a real connection, against a real agent: it costs a bounded amount, and
/// afterwards the agent serves as before.

#include <atomic>
#include <filesystem>
#include <future>
#include <thread>

#include <gmock/gmock.h>
#include <malloc.h>

#include "agent/agent.h"
#include "agent/tunnel.h"
#include "base/file.h"
#include "exec/runner_fixture.h"
#include "net/ssh/server.h"
#include "net/ssh/ssh_fixture.h"
#include "protocol/agent_protocol.h"

namespace hive::agent {
namespace {

using namespace std::chrono_literals;
using net::ssh::LineChannel;
using net::ssh::Mailbox;
using testing::HasSubstr;

/// The gateway's end of one tunnel.
struct GatewayEnd final : LineChannel::Handler {
  void on_line(std::string_view line) override {
    ++count;
    if (keeps) lines.put(std::string(line));
  }
  void on_writable() override { writable.put(1); }
  void on_closed(const Error& reason) override { closed.put(reason); }

  std::atomic<size_t> count = 0;
  bool keeps = true;
  Mailbox<std::string> lines;
  Mailbox<int> writable;
  Mailbox<Error> closed;
};

class HostileGatewayTest : public testing::Test {
 protected:
  HostileGatewayTest() : runtime_(2) {
    for (const char* name : {"host", "agent"}) {
      const auto key = crypto::PrivateKey::generate(name);
      EXPECT_TRUE(write_file_atomically(folder_ / name, key->to_openssh(), 0600));
    }
    net::ssh::ServerOptions options;
    options.listen_address = "127.0.0.1:0";
    options.host_key_path = folder_ / "host";
    options.authenticate = [](const std::string&, const crypto::PublicKey&, const std::string&) -> Result<void> {
      return {};
    };
    options.accept = [this](std::shared_ptr<LineChannel> channel) { accepted_.put(std::move(channel)); };
    auto server = net::ssh::Server::listen(runtime_, std::move(options));
    EXPECT_TRUE(server);
    server_ = *std::move(server);

    config_.source_path = "agent.json";
    config_.agent_id = "agent-1";
    config_.private_key_path = folder_ / "agent";
    config_.known_host_key_path = folder_ / "known";
    config_.gateways = {{"127.0.0.1", server_->port()}};
    config_.log_paths.clear();
    auto agent = Agent::create(runtime_, worker(), config_);
    EXPECT_TRUE(agent);
    agent_ = *std::move(agent);
    TunnelTuning tuning;
    tuning.backoff_base = 1ms;
    tuning.backoff_cap = 1ms;
    auto tunnel = Tunnel::create(
        runtime_, worker(), config_,
        {.on_connected = [this](std::shared_ptr<LineChannel> channel) { agent_->serve(std::move(channel)); },
         .on_state = {}},
        tuning);
    EXPECT_TRUE(tunnel);
    tunnel_ = *std::move(tunnel);
    runtime_.start();
    worker().post([this] { tunnel_->start(); });
    take();
  }

  ~HostileGatewayTest() override {
    std::promise<void> stopped;
    worker().post([&] {
      tunnel_->stop();
      stopped.set_value();
    });
    stopped.get_future().wait();
    server_.reset();
    runtime_.stop();
    tunnel_.reset();
    agent_.reset();
  }

  net::Worker& worker() { return runtime_.worker(0); }

  /// Waits for the agent's next connection.
  void take() {
    ASSERT_TRUE(accepted_.take_into(channel_));
    end_ = std::make_shared<GatewayEnd>();
    on_gateway([&] { channel_->set_handler(end_); });
  }
  void on_gateway(const std::function<void()>& task) {
    std::promise<void> done;
    channel_->worker().post([&] {
      task();
      done.set_value();
    });
    done.get_future().wait();
  }
  /// Sends `line`, however long that takes; false when the tunnel ended instead.
  bool say(std::string_view line) {
    for (;;) {
      Result<void> sent;
      on_gateway([&] { sent = channel_->send(line); });
      if (sent) return true;
      if (sent.error().code != ErrorCode::resource_exhausted) return false;
      end_->writable.take();
    }
  }
  /// The agent answers this, whatever went before.
  void expect_alive() {
    ASSERT_TRUE(say(R"({"jsonrpc":"2.0","id":"alive","method":"ping"})"));
    while (end_->lines.take().find(R"("id":"alive")") == std::string::npos) {
      ASSERT_FALSE(HasFailure());
    }
  }

  exec::TemporaryFolder folder_;
  net::Runtime runtime_;
  config::AgentConfig config_;
  Mailbox<std::shared_ptr<LineChannel>> accepted_;
  std::unique_ptr<net::ssh::Server> server_;
  std::unique_ptr<Agent> agent_;
  std::shared_ptr<Tunnel> tunnel_;
  std::shared_ptr<LineChannel> channel_;
  std::shared_ptr<GatewayEnd> end_;
};

size_t allocated_bytes() {
  return ::mallinfo2().uordblks;
}

TEST_F(HostileGatewayTest, OneThatNeverReadsFillsABoundedQueueAndLosesNoAnswer) {
  constexpr size_t questions = 6000;  // each is answered by several kilobytes
  end_->keeps = false;
  on_gateway([&] { channel_->set_reading(false); });
  const size_t before = allocated_bytes();
  size_t peak = before;
  std::thread asking([&] {
    for (size_t i = 0; i < questions; ++i)
      if (!say(fmt::format(R"({{"jsonrpc":"2.0","id":{},"method":"tools/list"}})", i))) break;
  });
  // The agent stops to read when its answers have nowhere to go.
  for (int quiet = 0, last = -1; quiet < 50; ++quiet) {
    peak = std::max(peak, allocated_bytes());
    int queued = 0;
    on_gateway([&] { queued = static_cast<int>(channel_->traffic().queued); });
    if (queued != last) quiet = 0;
    last = queued;
  }
  EXPECT_LT(peak - before, size_t{64} << 20);
  on_gateway([&] { channel_->set_reading(true); });
  asking.join();
  const auto end = std::chrono::steady_clock::now() + 60s;
  while (end_->count < questions && std::chrono::steady_clock::now() < end)
    on_gateway([] {});
  EXPECT_EQ(end_->count, questions);
  end_->keeps = true;
  expect_alive();
}

TEST_F(HostileGatewayTest, ALineWithoutAnEndEndsTheConnectionAndTheAgentDialsAgain) {
  EXPECT_TRUE(say(std::string(6'000'000, 'x')));
  EXPECT_THAT(end_->closed.take().message, HasSubstr("line longer than the limit"));
  take();
  expect_alive();
}

TEST_F(HostileGatewayTest, LinesThatAreNoRequestsAreAnsweredAndForgotten) {
  end_->keeps = false;
  constexpr size_t rounds = 500;
  const std::vector<std::string> nonsense = {
      "null",
      "[]",
      "17",
      "{}",
      R"({"id":{}})",
      R"({"jsonrpc":"2.0","id":1})",
      std::string(20'000, '['),
      R"({"jsonrpc":"2.0","id":1,"method":17})",
      R"({"jsonrpc":"2.0","id":1,"method":"nothing/like/it"})",
      R"({"jsonrpc":"2.0","id":1,"method":"tools/call","params":[]})",
      R"({"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"no_such_tool"}})",
      R"({"jsonrpc":"2.0","id":"answer to nothing","result":{}})"};
  for (size_t i = 0; i < rounds; ++i)
    for (const std::string& line : nonsense)
      ASSERT_TRUE(say(line));
  const auto end = std::chrono::steady_clock::now() + 60s;
  while (end_->count < rounds * nonsense.size() && std::chrono::steady_clock::now() < end)
    on_gateway([] {});
  EXPECT_EQ(end_->count, rounds * nonsense.size());
  end_->keeps = true;
  expect_alive();
}

TEST_F(HostileGatewayTest, MoreCallsThanItAdmitsAreRefusedAsBusy) {
  const size_t calls = config_.max_concurrent_calls * 20;
  // Each stands in line for the threads that read.
  for (size_t i = 0; i < calls; ++i) {
    ASSERT_TRUE(say(fmt::format(
        R"({{"jsonrpc":"2.0","id":"{}","method":"tools/call","params":{{"name":"get_system_info","arguments":{{}}}}}})",
        i)));
  }
  size_t answered = 0;
  while (answered < calls) {
    const std::string line = end_->lines.take();
    ASSERT_FALSE(HasFailure());
    EXPECT_TRUE(line.find(R"("outcome":"success")") != std::string::npos || line.find("busy") != std::string::npos ||
                line.find("myrmex-hive/outcome") != std::string::npos)
        << line.substr(0, 300);
    ++answered;
  }
  expect_alive();
}

TEST_F(HostileGatewayTest, CancellationsOfNothingAreIgnored) {
  for (int i = 0; i < 5000; ++i) {
    ASSERT_TRUE(
        say(fmt::format(R"({{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{}}}}})", i)));
  }
  expect_alive();
}

}  // namespace
}  // namespace hive::agent
