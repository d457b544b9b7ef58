#include "gateway/fleet/session_watch.h"

#include <atomic>
#include <condition_variable>
#include <ctime>
#include <filesystem>
#include <future>

#include <gtest/gtest.h>

#include "crypto/scratch_folder.h"
#include "gateway/fleet/key_fixture.h"
#include "net/ssh/fake_line_channel.h"

namespace hive::fleet {
namespace {

using net::ssh::FakeLineChannel;
using test::new_key;

/// The machine's clock, whose date somebody may step.
class SteppedClock final : public Clock {
 public:
  [[nodiscard]] SteadyTime steady_now() const override { return system_clock().steady_now(); }
  [[nodiscard]] WallTime wall_now() const override { return system_clock().wall_now() + step_.load(); }
  void step(std::chrono::hours by) { step_ = by; }

 private:
  std::atomic<std::chrono::hours> step_ = std::chrono::hours(0);
};

/// A fleet with a file of keys, watched as in the gateway.
class SessionWatchTest : public ::testing::Test {
 protected:
  SessionWatchTest() {
    EXPECT_TRUE(keys_.check());
    watch_ = SessionWatch::create(runtime_, *fleet_, keys_);
    runtime_.start();
  }
  ~SessionWatchTest() override {
    watch_->stop();
    fleet_->close("end of test");
    on_worker([] {});
    on_worker([] {});
    runtime_.stop();
  }

  void on_worker(const std::function<void()>& task) {
    std::promise<void> done;
    runtime_.worker(0).post([&] {
      task();
      done.set_value();
    });
    done.get_future().wait();
  }

  std::shared_ptr<FakeLineChannel> connect(const std::string& agent, const crypto::PublicKey& key) {
    auto channel = std::make_shared<FakeLineChannel>(runtime_.worker(0), agent);
    channel->set_key(key.fingerprint());
    on_worker([&] { fleet_->add(channel); });
    return channel;
  }

  /// How long the agent stays online, up to a limit.
  std::chrono::milliseconds online_for(const std::string& agent) {
    auto began = std::chrono::steady_clock::now();
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, std::chrono::seconds(5), [&] { return offline_ == agent; });
    return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - began);
  }

  hive::test::ScratchFolder folder_;
  crypto::PublicKey first_ = new_key("edge-1");
  crypto::PublicKey second_ = new_key("edge-2");
  std::string path_ = folder_.write("authorized_keys", first_.to_line() + "\n" + second_.to_line() + "\n");
  SteppedClock clock_;
  AuthorizedKeysFile keys_{path_, clock_};
  std::mutex mutex_;
  std::condition_variable changed_;
  std::string offline_;  // guarded by mutex_
  std::unique_ptr<Fleet> fleet_ =
      Fleet::create(system_clock(), {},
                    {.online = {},
                     .offline =
                         [this](const std::string& agent, const std::string&) {
                           std::lock_guard lock(mutex_);
                           offline_ = agent;
                           changed_.notify_all();
                         },
                     .contested = {},
                     .admit =
                         [this](const net::ssh::Peer& peer) {
                           return keys_.authorize_session(peer.user, peer.key_fingerprint, peer.address);
                         }});
  net::Runtime runtime_{1, 1};
  std::shared_ptr<SessionWatch> watch_;
};

TEST_F(SessionWatchTest, AnEditInPlaceEndsTheSessionWithinASecondAndNoOther) {
  connect("edge-1", first_);
  auto other = connect("edge-2", second_);
  folder_.write("authorized_keys", second_.to_line() + "\n");
  EXPECT_LT(online_for("edge-1"), std::chrono::seconds(1));
  EXPECT_TRUE(fleet_->find("edge-2")->online);
}

TEST_F(SessionWatchTest, AFileThatIsReplacedCountsAtOnceToo) {
  connect("edge-1", first_);
  folder_.write("next", second_.to_line() + "\n");
  std::filesystem::rename(folder_.path("next"), path_);
  EXPECT_LT(online_for("edge-1"), std::chrono::seconds(1));
}

TEST_F(SessionWatchTest, AFileThatIsGoneEndsAllSessions) {
  connect("edge-1", first_);
  std::filesystem::remove(path_);
  EXPECT_LT(online_for("edge-1"), std::chrono::seconds(2));
}

TEST_F(SessionWatchTest, ASessionThatArrivesAfterTheRevocationIsNotAdmitted) {
  ASSERT_EQ(*keys_.remove_agent("edge-1"), 1U);
  auto channel = connect("edge-1", first_);
  EXPECT_FALSE(channel->is_open());
  EXPECT_FALSE(fleet_->find("edge-1"));
}

TEST_F(SessionWatchTest, ASessionEndsWhenItsKeyExpires) {
  std::time_t later = std::time(nullptr) + 3600;
  char expiry[32];
  ASSERT_GT(std::strftime(expiry, sizeof(expiry), "%Y%m%d%H%M%SZ", std::gmtime(&later)), 0U);
  folder_.write("authorized_keys",
                "expiry-time=\"" + std::string(expiry) + "\" " + first_.to_line() + "\n" + second_.to_line() + "\n");
  ASSERT_TRUE(keys_.check());
  connect("edge-1", first_);
  connect("edge-2", second_);
  ASSERT_TRUE(fleet_->find("edge-1")->online);
  clock_.step(std::chrono::hours(2));
  online_for("edge-1");
  EXPECT_FALSE(fleet_->find("edge-1")->online);
  EXPECT_TRUE(fleet_->find("edge-2")->online);
}

}  // namespace
}  // namespace hive::fleet
