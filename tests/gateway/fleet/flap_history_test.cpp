#include "gateway/fleet/flap_history.h"

#include <gtest/gtest.h>

namespace hive::fleet {
namespace {

class FlapHistoryTest : public ::testing::Test {
 protected:
  void connect(const std::string& address, bool replaces, std::chrono::seconds later = std::chrono::seconds(1)) {
    clock_.advance(later);
    history_.add(address, replaces, clock_.steady_now(), clock_.wall_now());
  }

  ManualClock clock_;
  FlapHistory history_;
};

TEST_F(FlapHistoryTest, AFewLostConnectionsAreNoFlapping) {
  for (int i = 0; i < 5; ++i)
    connect("192.0.2.1", i % 2 == 1);
  EXPECT_EQ(history_.flapping(), nullptr);
  EXPECT_FALSE(history_.take_news(clock_.steady_now()));
}

TEST_F(FlapHistoryTest, ManyConnectionsInAShortTimeAreFlapping) {
  WallTime began = clock_.wall_now() + std::chrono::seconds(1);
  for (int i = 0; i < 6; ++i)
    connect("192.0.2.1", false);
  ASSERT_NE(history_.flapping(), nullptr);
  EXPECT_EQ(history_.flapping()->since, began);
  EXPECT_EQ(history_.flapping()->connections, 6U);
  EXPECT_FALSE(history_.flapping()->contested);
}

TEST_F(FlapHistoryTest, ConnectionsFarApartAreNot) {
  for (int i = 0; i < 20; ++i)
    connect("192.0.2.1", false, std::chrono::minutes(3));
  EXPECT_EQ(history_.flapping(), nullptr);
}

TEST_F(FlapHistoryTest, TwoAddressesThatTakeThePlaceFromEachOtherContestIt) {
  for (int i = 0; i < 4; ++i)
    connect(i % 2 == 0 ? "192.0.2.1" : "198.51.100.7", i > 0);
  ASSERT_NE(history_.flapping(), nullptr);
  EXPECT_TRUE(history_.flapping()->contested);
  EXPECT_EQ(history_.flapping()->addresses, (std::vector<std::string>{"198.51.100.7", "192.0.2.1"}));
  EXPECT_TRUE(history_.take_news(clock_.steady_now())->contains("is one key used on two machines?"));
}

TEST_F(FlapHistoryTest, WhoRoamsFromNetworkToNetworkContestsNothing) {
  for (int i = 0; i < 5; ++i)
    connect("192.0.2." + std::to_string(i), true);
  EXPECT_EQ(history_.flapping(), nullptr);
}

TEST_F(FlapHistoryTest, NewsComeOnceAMinute) {
  for (int i = 0; i < 6; ++i)
    connect("192.0.2.1", false);
  EXPECT_TRUE(history_.take_news(clock_.steady_now()));
  connect("192.0.2.1", false);
  EXPECT_FALSE(history_.take_news(clock_.steady_now()));
  connect("192.0.2.1", false, std::chrono::minutes(1));
  EXPECT_TRUE(history_.take_news(clock_.steady_now()));
}

TEST_F(FlapHistoryTest, IsOverWhenTheConnectionsAreLongAgo) {
  for (int i = 0; i < 6; ++i)
    connect("192.0.2.1", false);
  EXPECT_FALSE(history_.settle(clock_.steady_now()));
  clock_.advance(FlapHistory::window);
  EXPECT_TRUE(history_.settle(clock_.steady_now()));
  EXPECT_EQ(history_.flapping(), nullptr);
  EXPECT_FALSE(history_.settle(clock_.steady_now()));
}

TEST_F(FlapHistoryTest, RemembersNoMoreThanItNeeds) {
  for (int i = 0; i < 1000; ++i)
    connect("192.0.2." + std::to_string(i % 200), false, std::chrono::seconds(0));
  EXPECT_LE(history_.flapping()->connections, 24U);
  clock_.advance(FlapHistory::news_interval);
  connect("192.0.2.1", false, std::chrono::seconds(0));
  EXPECT_TRUE(history_.take_news(clock_.steady_now())->starts_with("at least 24 connections"));
  EXPECT_LE(history_.flapping()->addresses.size(), 4U);
}

}  // namespace
}  // namespace hive::fleet
