#include "net/runtime/service_manager.h"

#include <thread>

#include <gmock/gmock.h>

#include "net/runtime/service_manager_fixture.h"

namespace hive::net {
namespace {

using testing::StartsWith;

TEST(ServiceManagerTest, WithoutAManagerNothingHappens) {
  ::unsetenv("NOTIFY_SOCKET");
  ::setenv("WATCHDOG_USEC", "1000000", 1);
  const ServiceManager manager = ServiceManager::of_this_process();
  EXPECT_FALSE(manager.listens());
  EXPECT_EQ(manager.watchdog_limit().count(), 0);
  manager.ready("fine");
  manager.feed_watchdog();
}

TEST(ServiceManagerTest, SaysWhatTheProtocolKnows) {
  ListeningManager listening;
  const ServiceManager manager = ServiceManager::of_this_process();
  ASSERT_TRUE(manager.listens());
  manager.ready("12 agents online");
  EXPECT_EQ(listening.take(), "READY=1\nSTATUS=12 agents online\n");
  manager.reloading();
  EXPECT_THAT(listening.take(), StartsWith("RELOADING=1\nMONOTONIC_USEC="));
  manager.feed_watchdog();
  EXPECT_EQ(listening.take(), "WATCHDOG=1\n");
  manager.stopping();
  EXPECT_EQ(listening.take(), "STOPPING=1\nSTATUS=stopping\n");
}

TEST(ServiceManagerTest, AStatusCannotBecomeAnotherMessage) {
  ListeningManager listening;
  const ServiceManager manager = ServiceManager::of_this_process();
  manager.status("host\nMAINPID=1\n\x1b[31m");
  const std::string message = listening.take();
  EXPECT_EQ(message, "STATUS=host MAINPID=1 \\x1b[31m\n");
  manager.status(std::string(5000, 'x'));
  EXPECT_LE(listening.take().size(), 600U);
}

TEST(ServiceManagerTest, ABusyManagerHearsWhatMatters) {
  ListeningManager listening;
  const ServiceManager manager = ServiceManager::of_this_process();
  // Until its queue is full.
  int told = 0;
  while (manager.status("busy"))
    ++told;
  std::thread ready([&] { manager.ready("at last"); });
  for (int i = 0; i < told; ++i)
    EXPECT_EQ(listening.take(), "STATUS=busy\n");
  EXPECT_EQ(listening.take(), "READY=1\nSTATUS=at last\n");
  ready.join();
}

TEST(ServiceManagerTest, ChildrenDoNotInheritTheManager) {
  ListeningManager listening("1000000");
  ::setenv("WATCHDOG_PID", std::to_string(::getpid()).c_str(), 1);
  const ServiceManager manager = ServiceManager::of_this_process();
  EXPECT_EQ(manager.watchdog_limit(), std::chrono::seconds(1));
  EXPECT_EQ(std::getenv("NOTIFY_SOCKET"), nullptr);
  EXPECT_EQ(std::getenv("WATCHDOG_USEC"), nullptr);
  EXPECT_EQ(std::getenv("WATCHDOG_PID"), nullptr);
}

TEST(ServiceManagerTest, AWatchdogOfAnotherProcessIsNotOurs) {
  ListeningManager listening("1000000");
  ::setenv("WATCHDOG_PID", "1", 1);
  EXPECT_EQ(ServiceManager::of_this_process().watchdog_limit().count(), 0);
}

TEST(ServiceManagerTest, NonsenseInTheVariablesIsNoManager) {
  for (const char* path : {"", "relative", "/", "/no/such/socket", "@"}) {
    ::setenv("NOTIFY_SOCKET", path, 1);
    EXPECT_FALSE(ServiceManager::of_this_process().listens()) << path;
  }
  ::setenv("NOTIFY_SOCKET", ("/" + std::string(200, 'x')).c_str(), 1);
  EXPECT_FALSE(ServiceManager::of_this_process().listens());
  for (const char* limit : {"", "soon", "-5", "99999999999999999999"}) {
    ListeningManager listening(limit);
    EXPECT_EQ(ServiceManager::of_this_process().watchdog_limit().count(), 0) << limit;
  }
}

}  // namespace
}  // namespace hive::net
