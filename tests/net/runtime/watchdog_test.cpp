#include "net/runtime/watchdog.h"

#include <atomic>
#include <future>

#include <gtest/gtest.h>

#include "net/runtime/service_manager_fixture.h"

namespace hive::net {
namespace {

using namespace std::chrono_literals;

class WatchdogTest : public testing::Test {
 protected:
  void SetUp() override { runtime.start(); }
  std::vector<Worker*> workers() { return {&runtime.worker(0), &runtime.worker(1)}; }

  // Rounds of 10 ms.
  ListeningManager listening{"40000"};
  ServiceManager manager = ServiceManager::of_this_process();
  Runtime runtime{2};
};

TEST_F(WatchdogTest, FeedsWhileEveryLoopTurns) {
  Watchdog watchdog(manager, workers());
  for (int i = 0; i < 5; ++i)
    EXPECT_EQ(listening.take(), "WATCHDOG=1\n");
}

TEST_F(WatchdogTest, OneLoopThatHangsStopsTheFeedAndItsReturnResumesIt) {
  std::promise<void> release;
  std::promise<void> hangs;
  std::atomic<int> rounds = 0;
  Watchdog watchdog(manager, workers(), [&] { return std::to_string(++rounds); });
  runtime.worker(1).post([&] {
    hangs.set_value();
    release.get_future().wait();
  });
  hangs.get_future().wait();
  // What was asked before it hung may still be answered; after two rounds every question has met the hanging loop.
  std::string last;
  auto status_of = [](const std::string& message) {
    return message.starts_with("STATUS=") ? std::stoi(message.substr(7)) : 0;
  };
  const int seen = rounds + 3;
  while (status_of(last) < seen)
    last = listening.take();
  int quiet_rounds = 0;
  while (quiet_rounds < 10) {
    last = listening.take();
    ASSERT_NE(last, "WATCHDOG=1\n");
    ++quiet_rounds;
  }
  release.set_value();
  while (listening.take() != "WATCHDOG=1\n") {
  }
}

TEST_F(WatchdogTest, AProgramThatEndsIsFedWithoutItsLoops) {
  Watchdog watchdog(manager, workers());
  EXPECT_EQ(listening.take(), "WATCHDOG=1\n");
  watchdog.stop_asking();
  runtime.stop();
  listening.drain();
  for (int i = 0; i < 5; ++i)
    EXPECT_EQ(listening.take(), "WATCHDOG=1\n");
}

TEST_F(WatchdogTest, AStatusIsToldWhenItChanges) {
  std::atomic<int> agents = 1;
  Watchdog watchdog(manager, workers(), [&] { return std::to_string(agents) + " online"; });
  auto next_status = [&] {
    std::string message;
    do {
      message = listening.take();
    } while (!message.starts_with("STATUS="));
    return message;
  };
  EXPECT_EQ(next_status(), "STATUS=1 online\n");
  agents = 2;
  EXPECT_EQ(next_status(), "STATUS=2 online\n");
}

TEST(WatchdogWithoutManagerTest, HasNoThread) {
  ::unsetenv("NOTIFY_SOCKET");
  const ServiceManager manager = ServiceManager::of_this_process();
  Runtime runtime(1);
  Watchdog watchdog(manager, {&runtime.worker(0)}, []() -> std::string {
    ADD_FAILURE() << "asked";
    return "";
  });
  watchdog.stop_asking();
}

}  // namespace
}  // namespace hive::net
