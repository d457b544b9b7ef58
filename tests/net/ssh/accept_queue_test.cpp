#include "net/ssh/accept_queue.h"

#include <gtest/gtest.h>

namespace hive::net::ssh {
namespace {

class AcceptQueueTest : public testing::Test {
 protected:
  /// Puts connection number `port` of a source into the queue; returns what must go for it, 0 for nothing.
  int push(const std::string& source, int port) {
    AcceptQueue::Waiting waiting;
    waiting.source = source;
    waiting.peer.port = static_cast<std::uint16_t>(port);
    auto lost = queue_.push(std::move(waiting));
    return lost ? lost->peer.port : 0;
  }
  int pop(const std::string& not_this_source = {}) {
    auto next = queue_.pop([&](const std::string& source) { return source != not_this_source; });
    return next ? next->peer.port : 0;
  }

  AcceptQueue queue_{6};
};

TEST_F(AcceptQueueTest, TheSourcesTakeTurnsAndEachKeepsItsOrder) {
  for (int port : {1, 2, 3})
    push("a", port);
  push("b", 11);
  push("c", 21);
  EXPECT_EQ(queue_.size(), 5U);
  std::vector<int> order;
  while (!queue_.empty())
    order.push_back(pop());
  EXPECT_EQ(order, (std::vector<int>{1, 11, 21, 2, 3}));
  EXPECT_EQ(pop(), 0);
}

TEST_F(AcceptQueueTest, ASourceThatMayNotBeginIsPassedOverAndKeepsItsPlace) {
  push("a", 1);
  push("b", 11);
  EXPECT_EQ(pop("a"), 11);
  EXPECT_EQ(pop("a"), 0);
  EXPECT_EQ(queue_.waiting_of("a"), 1U);
  EXPECT_EQ(queue_.waiting_of("b"), 0U);
  EXPECT_EQ(pop(), 1);
}

TEST_F(AcceptQueueTest, WhoFloodsItLosesWhatHeAdded) {
  for (int port = 1; port <= 6; ++port)
    EXPECT_EQ(push("flood", port), 0);
  EXPECT_EQ(push("flood", 7), 7);
  EXPECT_EQ(push("honest", 11), 6);
  EXPECT_EQ(push("honest", 12), 5);
  EXPECT_EQ(queue_.size(), 6U);
  EXPECT_EQ(pop(), 1);
  EXPECT_EQ(pop(), 11);
}

TEST_F(AcceptQueueTest, AFloodFromASourceForEachConnectionPushesOutNobodyWhoWaits) {
  push("honest", 1);
  for (int port = 2; port <= 6; ++port)
    push("flood-" + std::to_string(port), port);
  for (int port = 7; port <= 20; ++port)
    EXPECT_EQ(push("flood-" + std::to_string(port), port), port);
  EXPECT_EQ(pop(), 1);
}

}  // namespace
}  // namespace hive::net::ssh
