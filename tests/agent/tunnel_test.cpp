#include "agent/tunnel.h"

#include <condition_variable>
#include <deque>
#include <filesystem>
#include <future>
#include <mutex>

#include <gmock/gmock.h>

#include "base/file.h"
#include "net/ssh/server.h"

namespace hive::agent {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;

template <class T>
class Mailbox {
 public:
  void put(T value) {
    std::lock_guard lock(mutex_);
    items_.push_back(std::move(value));
    changed_.notify_all();
  }
  T take() {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, 20s, [this] { return !items_.empty(); })) {
      ADD_FAILURE() << "nothing arrived in time";
      return T{};
    }
    T value = std::move(items_.front());
    items_.pop_front();
    return value;
  }

  size_t size() {
    std::lock_guard lock(mutex_);
    return items_.size();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<T> items_;
};

/// A channel without a network.
class FakeChannel final : public net::ssh::LineChannel {
 public:
  explicit FakeChannel(net::Worker& worker) : worker_(worker) {}
  net::Worker& worker() override { return worker_; }
  const net::ssh::Peer& peer() const override { return peer_; }
  void set_handler(std::shared_ptr<Handler> handler) override { handler_ = std::move(handler); }
  Result<void> send(std::string_view line) override {
    sent.emplace_back(line);
    return {};
  }
  size_t queued_bytes() const override { return 0; }
  net::ssh::Traffic traffic() const override {
    if (on_check) on_check();
    return traffic_now;
  }
  void probe() override {
    ++probes;
    if (answers_probes) ++traffic_now.received;
  }
  void set_reading(bool enabled) override { reading = enabled; }
  void close(std::string_view reason) override {
    worker_.post([self = shared_from_this(), this, text = std::string(reason)] { end(text); });
  }
  bool is_open() const override { return open_; }

  void receive(std::string_view line) { handler_->on_line(line); }
  void end(const std::string& reason) {
    open_ = false;
    if (auto handler = std::exchange(handler_, nullptr)) handler->on_closed(Error{ErrorCode::unavailable, reason});
  }

  std::vector<std::string> sent;
  bool reading = true;
  std::function<void()> on_check;
  net::ssh::Traffic traffic_now;
  int probes = 0;
  bool answers_probes = false;

 private:
  net::Worker& worker_;
  net::ssh::Peer peer_;
  std::shared_ptr<Handler> handler_;
  bool open_ = true;
};

struct NullAttempt : net::ssh::ConnectAttempt {};

/// A tunnel whose connections the test decides about.
class TunnelTest : public testing::Test {
 protected:
  using Outcome = Result<std::shared_ptr<net::ssh::LineChannel>>;
  struct Dial {
    net::ssh::ClientOptions options;
    std::shared_ptr<std::move_only_function<void(Outcome)>> done;
  };

  TunnelTest() : runtime_(1) {
    config_.source_path = "agent.json";
    config_.agent_id = "agent-1";
    config_.private_key_path = "/nonexistent/key";
    config_.gateways = {{"gw-1", 2222}, {"gw-2", 2222}};
    config_.keepalive = 20ms;
    tuning_.backoff_base = 8ms;
    tuning_.backoff_cap = 32ms;
    tuning_.random = [] { return 1.0; };
    tuning_.clock = &clock_;
    tuning_.connect = [this](net::Runtime&, net::Worker&, net::ssh::ClientOptions options, auto done) {
      dials_.put({std::move(options), std::make_shared<std::move_only_function<void(Outcome)>>(std::move(done))});
      return std::make_unique<NullAttempt>();
    };
    callbacks_.on_connected = [this](std::shared_ptr<net::ssh::LineChannel> channel) {
      connected_.put(std::move(channel));
    };
    callbacks_.on_state = [this](const TunnelStatus& status) {
      if (status.state == TunnelState::waiting) waits_.put(status);
    };
    runtime_.start();
  }
  ~TunnelTest() override {
    if (tunnel_) on_worker([this] { tunnel_->stop(); });
    // What stop() has posted runs before this does.
    on_worker([] {});
    runtime_.stop();
  }

  void start() {
    auto made = Tunnel::create(runtime_, runtime_.worker(0), config_, callbacks_, tuning_);
    ASSERT_TRUE(made) << made.error().message;
    tunnel_ = *made;
    on_worker([this] { tunnel_->start(); });
  }
  void on_worker(const std::function<void()>& task) {
    std::promise<void> done;
    runtime_.worker(0).post([&] {
      task();
      done.set_value();
    });
    done.get_future().wait();
  }
  void refuse(const Dial& dial, const std::string& why = "refused") {
    on_worker([&] { (*dial.done)(fail(ErrorCode::unavailable, "{}", why)); });
  }
  std::shared_ptr<FakeChannel> accept(const Dial& dial) {
    auto channel = std::make_shared<FakeChannel>(runtime_.worker(0));
    on_worker([&] { (*dial.done)(Outcome(channel)); });
    return channel;
  }

  net::Runtime runtime_;
  ManualClock clock_;
  config::AgentConfig config_;
  TunnelTuning tuning_;
  TunnelCallbacks callbacks_;
  std::shared_ptr<Tunnel> tunnel_;
  Mailbox<Dial> dials_;
  Mailbox<std::shared_ptr<net::ssh::LineChannel>> connected_;
  Mailbox<TunnelStatus> waits_;
};

struct Recorder : net::ssh::LineChannel::Handler {
  void on_line(std::string_view line) override { lines.put(std::string(line)); }
  void on_closed(const Error& reason) override { closed.put(reason); }
  Mailbox<std::string> lines;
  Mailbox<Error> closed;
};

TEST_F(TunnelTest, CyclesThroughTheGatewaysWithGrowingDelays) {
  start();
  std::vector<std::string> hosts;
  std::vector<long> delays;
  for (int i = 0; i < 5; ++i) {
    const Dial dial = dials_.take();
    hosts.push_back(dial.options.host);
    EXPECT_EQ(dial.options.user, "agent-1");
    refuse(dial, "no route");
    const TunnelStatus status = waits_.take();
    EXPECT_EQ(status.last_error.message, "no route");
    EXPECT_EQ(status.gateway.host, dial.options.host);
    delays.push_back(status.retry_in.count());
  }
  EXPECT_THAT(hosts, ElementsAre("gw-1", "gw-2", "gw-1", "gw-2", "gw-1"));
  EXPECT_THAT(delays, ElementsAre(8, 16, 32, 32, 32));
}

TEST_F(TunnelTest, ACleanCloseBacksOffTooAndAMereConnectionDoesNotResetTheDelay) {
  start();
  std::vector<long> delays;
  for (int i = 0; i < 3; ++i) {
    auto channel = accept(dials_.take());
    connected_.take();
    on_worker([&] { channel->end("bye"); });
    delays.push_back(waits_.take().retry_in.count());
  }
  EXPECT_THAT(delays, ElementsAre(8, 16, 32));
}

TEST_F(TunnelTest, AUsefulExchangeResetsTheDelay) {
  start();
  refuse(dials_.take());
  EXPECT_EQ(waits_.take().retry_in, 8ms);
  refuse(dials_.take());
  EXPECT_EQ(waits_.take().retry_in, 16ms);
  auto channel = accept(dials_.take());
  connected_.take();
  on_worker([&] {
    tunnel_->useful_exchange();
    channel->end("bye");
  });
  EXPECT_EQ(waits_.take().retry_in, 8ms);
}

TEST_F(TunnelTest, PassesLinesAndTheEndToTheHandler) {
  start();
  auto inner = accept(dials_.take());
  auto channel = connected_.take();
  auto recorder = std::make_shared<Recorder>();
  EXPECT_FALSE(inner->reading) << "lines wait for a handler";
  on_worker([&] {
    channel->set_handler(recorder);
    EXPECT_TRUE(inner->reading);
    inner->receive("hello");
    EXPECT_TRUE(channel->send("answer"));
    inner->end("gone");
  });
  EXPECT_EQ(recorder->lines.take(), "hello");
  EXPECT_THAT(inner->sent, ElementsAre("answer"));
  EXPECT_EQ(recorder->closed.take().message, "gone");
  EXPECT_EQ(waits_.take().last_error.message, "gone");
}

TEST_F(TunnelTest, AGatewayThatFallsSilentIsLeftThoughItNeverPinged) {
  start();
  auto inner = accept(dials_.take());
  auto recorder = std::make_shared<Recorder>();
  auto channel = connected_.take();
  const SteadyTime connected_at = clock_.steady_now();
  on_worker([&] {
    // Time passes between two checks, however late they come.
    inner->on_check = [&] { clock_.advance(config_.keepalive / 2); };
    channel->set_handler(recorder);
  });
  EXPECT_THAT(recorder->closed.take().message, HasSubstr("the gateway: nothing heard for"));
  EXPECT_LE(clock_.steady_now() - connected_at, config_.keepalive * 3 + config_.keepalive / 2);
  on_worker([&] { EXPECT_GE(inner->probes, 1); });
  EXPECT_EQ(dials_.take().options.host, "gw-2");
}

TEST_F(TunnelTest, AGatewayThatNeverPingsButAnswersProbesIsKept) {
  start();
  auto inner = accept(dials_.take());
  auto channel = connected_.take();
  on_worker([&] {
    inner->on_check = [&] { clock_.advance(config_.keepalive / 2); };
    inner->answers_probes = true;
    channel->set_handler(std::make_shared<Recorder>());
  });
  // Far more than the patience with a silent one.
  int probes = 0;
  while (probes < 12)
    on_worker([&] { probes = channel->is_open() ? inner->probes : 1000; });
  EXPECT_LT(probes, 1000) << "it was given up";
}

TEST_F(TunnelTest, AGatewayThatIsHeardButGetsNothingIsDialedWithSmallPacketsFromThenOn) {
  start();
  const Dial first = dials_.take();
  EXPECT_EQ(first.options.max_segment_bytes, 0);
  auto inner = accept(first);
  auto channel = connected_.take();
  int checks = 0;
  on_worker([&] {
    inner->on_check = [&] {
      clock_.advance(config_.keepalive / 2);
      ++inner->traffic_now.received;
      ++checks;
    };
    inner->traffic_now.acked = 5000;
    inner->traffic_now.is_sending = true;
    channel->set_handler(std::make_shared<Recorder>());
  });
  for (int seen = 0; seen < 4;)
    on_worker([&] { seen = checks; });
  on_worker([&] { inner->end("the agent was silent for 45 s"); });
  const Dial other = dials_.take();
  EXPECT_EQ(other.options.host, "gw-2");
  EXPECT_EQ(other.options.max_segment_bytes, 0) << "another path";
  refuse(other);
  const Dial again = dials_.take();
  EXPECT_EQ(again.options.host, "gw-1");
  EXPECT_EQ(again.options.max_segment_bytes, 1160);
}

TEST_F(TunnelTest, AnEndWithNothingLeftToSendSaysNothingOfThePath) {
  start();
  auto inner = accept(dials_.take());
  auto channel = connected_.take();
  int checks = 0;
  on_worker([&] {
    inner->on_check = [&] {
      clock_.advance(config_.keepalive / 2);
      ++inner->traffic_now.received;
      ++checks;
    };
    channel->set_handler(std::make_shared<Recorder>());
  });
  for (int seen = 0; seen < 4;)
    on_worker([&] { seen = checks; });
  on_worker([&] { inner->end("the gateway stops"); });
  refuse(dials_.take());
  EXPECT_EQ(dials_.take().options.max_segment_bytes, 0);
}

TEST_F(TunnelTest, StopClosesAndDoesNotRedial) {
  start();
  auto inner = accept(dials_.take());
  auto recorder = std::make_shared<Recorder>();
  auto channel = connected_.take();
  on_worker([&] {
    channel->set_handler(recorder);
    tunnel_->stop();
  });
  EXPECT_THAT(recorder->closed.take().message, HasSubstr("stopping"));
  on_worker([&] { EXPECT_FALSE(inner->is_open()); });
  EXPECT_EQ(waits_.size(), 0U);
}

TEST_F(TunnelTest, ANewKeyConnectsBeforeTheOldConnectionIsGivenUp) {
  start();
  std::shared_ptr<FakeChannel> old_channel = accept(dials_.take());
  connected_.take();
  auto recorder = std::make_shared<Recorder>();
  on_worker([&] { old_channel->set_handler(recorder); });
  on_worker([this] { tunnel_->renew(); });
  const Dial second = dials_.take();
  EXPECT_EQ(second.options.host, "gw-1");
  EXPECT_TRUE(old_channel->is_open());
  std::shared_ptr<FakeChannel> new_channel = accept(second);
  connected_.take();
  EXPECT_TRUE(old_channel->is_open());
  // The gateway closes the old one; nobody redials for it.
  on_worker([&] { old_channel->end("replaced by a newer connection"); });
  EXPECT_EQ(waits_.size(), 0U);
  on_worker([&] { new_channel->end("gone"); });
  waits_.take();
}

TEST_F(TunnelTest, ANewKeyThatDoesNotConnectLeavesTheOldConnection) {
  start();
  std::shared_ptr<FakeChannel> channel = accept(dials_.take());
  connected_.take();
  on_worker([this] { tunnel_->renew(); });
  refuse(dials_.take(), "the gateway refused the key");
  EXPECT_TRUE(channel->is_open());
  EXPECT_EQ(waits_.size(), 0U);
  // And it is watched as before.
  on_worker([&] { channel->end("gone"); });
  waits_.take();
  dials_.take();
}

TEST_F(TunnelTest, ANewKeyDuringAnAttemptIsTakenUpByTheNextOne) {
  start();
  const Dial first = dials_.take();
  on_worker([this] {
    tunnel_->renew();
    tunnel_->renew();
  });
  EXPECT_EQ(dials_.size(), 0U);
  accept(first);
  connected_.take();
  accept(dials_.take());
  connected_.take();
  EXPECT_EQ(dials_.size(), 0U);
}

TEST_F(TunnelTest, ANewKeyEndsTheWaitForTheNextTry) {
  tuning_.backoff_base = 1h;
  tuning_.backoff_cap = 1h;
  start();
  refuse(dials_.take());
  waits_.take();
  on_worker([this] { tunnel_->renew(); });
  dials_.take();
}

TEST_F(TunnelTest, NeedsAGatewayAndAGoodPin) {
  config_.gateways.clear();
  EXPECT_FALSE(Tunnel::create(runtime_, runtime_.worker(0), config_, callbacks_, tuning_));
  config_.gateways = {{"gw", 2222}};
  config_.gateway_host_key = "nonsense";
  EXPECT_FALSE(Tunnel::create(runtime_, runtime_.worker(0), config_, callbacks_, tuning_));
}

TEST_F(TunnelTest, LearnsARealGatewaysKeyAndRefusesAnother) {
  std::string folder = (std::filesystem::temp_directory_path() / "hive-tunnel-XXXXXX").string();
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  const auto write_key = [&](const std::string& name) {
    const auto key = crypto::PrivateKey::generate(name);
    EXPECT_TRUE(write_file_atomically(folder + "/" + name, key->to_openssh(), 0600));
  };
  write_key("host");
  write_key("agent");
  net::ssh::ServerOptions options;
  options.listen_address = "127.0.0.1:0";
  options.host_key_path = folder + "/host";
  options.authenticate = [](const std::string&, const crypto::PublicKey&, const std::string&) -> Result<void> {
    return {};
  };
  auto accepted = std::make_shared<Mailbox<std::shared_ptr<net::ssh::LineChannel>>>();
  options.accept = [accepted](std::shared_ptr<net::ssh::LineChannel> channel) { accepted->put(std::move(channel)); };
  auto server = net::ssh::Server::listen(runtime_, options);
  ASSERT_TRUE(server) << server.error().message;
  const std::uint16_t port = (*server)->port();

  config_.gateways = {{"127.0.0.1", port}};
  config_.private_key_path = folder + "/agent";
  config_.known_host_key_path = folder + "/known";
  tuning_.connect = nullptr;
  start();
  ASSERT_TRUE(connected_.take());
  auto gateway_side = accepted->take();
  EXPECT_EQ(gateway_side->peer().user, "agent-1");

  // The gateway comes back with another key.
  server->reset();
  on_worker([&] { gateway_side->close("restart"); });
  write_key("host");
  options.listen_address = fmt::format("127.0.0.1:{}", port);
  server = net::ssh::Server::listen(runtime_, options);
  ASSERT_TRUE(server) << server.error().message;
  EXPECT_THAT(waits_.take().last_error.message, HasSubstr("restart")) << "the gateway's reason reaches the agent";
  std::string reason;
  for (int i = 0; i < 50 && reason.find("mismatch") == std::string::npos; ++i)
    reason = waits_.take().last_error.message;
  EXPECT_THAT(reason, HasSubstr("host key mismatch"));
  on_worker([this] { tunnel_->stop(); });
  server->reset();
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace hive::agent
