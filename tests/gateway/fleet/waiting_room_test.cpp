#include "gateway/fleet/waiting_room.h"

#include <optional>

#include <boost/asio/io_context.hpp>
#include <gtest/gtest.h>

namespace hive::fleet {
namespace {

class WaitingRoomTest : public ::testing::Test {
 protected:
  struct Asked {
    std::uint64_t ticket = 0;
    std::shared_ptr<std::optional<WaitEnd>> end = std::make_shared<std::optional<WaitEnd>>();
  };

  ~WaitingRoomTest() override {
    room_.close();
    settle();
  }

  Asked wait(std::string_view agent, std::chrono::milliseconds limit = std::chrono::hours(1)) {
    Asked asked;
    asked.ticket = room_.wait(agent, worker_, limit, [end = asked.end](WaitEnd how) {
      EXPECT_FALSE(end->has_value());
      *end = how;
    });
    return asked;
  }

  void settle() {
    worker_.context().restart();
    worker_.context().poll();
  }

  net::Worker worker_;
  WaitingRoom room_{{.per_agent = 2, .in_all = 3}};
};

TEST_F(WaitingRoomTest, WhoWaitsGoesOnWhenItsAgentComes) {
  Asked first = wait("edge-1");
  Asked second = wait("edge-1");
  Asked other = wait("edge-2");
  room_.arrived("edge-1");
  EXPECT_FALSE(first.end->has_value()) << "the end must not come from within the call";
  settle();
  EXPECT_EQ(*first.end, WaitEnd::online);
  EXPECT_EQ(*second.end, WaitEnd::online);
  EXPECT_FALSE(other.end->has_value());
  EXPECT_EQ(room_.size(), 1U);
}

TEST_F(WaitingRoomTest, WaitingEndsAtItsLimit) {
  Asked asked = wait("edge-1", std::chrono::milliseconds(1));
  auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (!asked.end->has_value() && std::chrono::steady_clock::now() < deadline) {
    worker_.context().restart();
    worker_.context().run_one_for(std::chrono::milliseconds(20));
  }
  EXPECT_EQ(*asked.end, WaitEnd::timed_out);
  EXPECT_EQ(room_.size(), 0U);
}

TEST_F(WaitingRoomTest, WaitingCanBeStoppedOnce) {
  Asked asked = wait("edge-1");
  room_.stop(asked.ticket);
  room_.stop(asked.ticket);
  room_.arrived("edge-1");
  settle();
  EXPECT_EQ(*asked.end, WaitEnd::ended);
}

TEST_F(WaitingRoomTest, NobodyWaitsInAFullRoom) {
  (void)wait("edge-1");
  (void)wait("edge-1");
  Asked third = wait("edge-1");
  EXPECT_EQ(third.ticket, 0U);
  (void)wait("edge-2");
  Asked fifth = wait("edge-3");
  settle();
  EXPECT_EQ(*third.end, WaitEnd::full);
  EXPECT_EQ(*fifth.end, WaitEnd::full);
  room_.arrived("edge-1");
  settle();
  EXPECT_NE(wait("edge-3").ticket, 0U) << "who has gone on makes room";
}

TEST_F(WaitingRoomTest, NobodyWaitsWhenTheGatewayStops) {
  Asked before = wait("edge-1");
  room_.close();
  Asked after = wait("edge-1");
  settle();
  EXPECT_EQ(*before.end, WaitEnd::ended);
  EXPECT_EQ(*after.end, WaitEnd::ended);
}

}  // namespace
}  // namespace hive::fleet
