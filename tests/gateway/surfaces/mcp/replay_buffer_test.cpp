#include "gateway/surfaces/mcp/replay_buffer.h"

#include <gtest/gtest.h>

namespace hive::mcp_surface {
namespace {

SharedMessage text(std::string value) {
  return std::make_shared<const std::string>(std::move(value));
}

std::string joined(const std::optional<ReplayBuffer::Replay>& replay) {
  if (!replay) return "nothing";
  std::string all;
  for (const ReplayBuffer::Event& event : replay->events)
    all += *event.message;
  return all;
}

TEST(ReplayBuffer, GivesWhatFollowedAnEventOnItsStream) {
  ReplayBuffer buffer({});
  std::string one = buffer.open();
  std::string two = buffer.open();
  EXPECT_NE(one, two);
  EXPECT_EQ(buffer.append(one, text("a"), false), 1u);
  EXPECT_EQ(buffer.append(two, text("b"), false), 1u);
  EXPECT_EQ(buffer.append(one, text("c"), true), 2u);
  EXPECT_EQ(joined(buffer.after(ReplayBuffer::event_id(one, 0))), "ac");
  EXPECT_EQ(joined(buffer.after(ReplayBuffer::event_id(one, 1))), "c");
  EXPECT_EQ(joined(buffer.after(ReplayBuffer::event_id(one, 2))), "");
  EXPECT_EQ(joined(buffer.after(ReplayBuffer::event_id(two, 0))), "b");
}

TEST(ReplayBuffer, KnowsNoEventThatItDidNotGiveOut) {
  ReplayBuffer buffer({});
  std::string one = buffer.open();
  buffer.append(one, text("a"), false);
  for (const std::string& id :
       {std::string(), std::string("_"), std::string("_0"), one, one + "_", one + "_2", one + "_-1", one + "_+1",
        one + "_99999999999999999999999", one + "x_1", one.substr(1) + "_0"})
    EXPECT_FALSE(buffer.after(id)) << id;
}

TEST(ReplayBuffer, DropsTheOldestNotificationsFirst) {
  ReplayBuffer buffer({.events = 3});
  std::string one = buffer.open();
  buffer.append(one, text("answer"), true);
  buffer.append(one, text("a"), false);
  buffer.append(one, text("b"), false);
  buffer.append(one, text("c"), false);
  EXPECT_EQ(joined(buffer.after(ReplayBuffer::event_id(one, 0))), "answerbc");
}

TEST(ReplayBuffer, ADroppedAnswerTakesItsStreamWithIt) {
  ReplayBuffer buffer({.bytes = 10});
  std::string one = buffer.open();
  std::string two = buffer.open();
  buffer.append(one, text("12345678"), true);
  buffer.append(two, text("12345678"), true);
  EXPECT_FALSE(buffer.after(ReplayBuffer::event_id(one, 0)));
  EXPECT_EQ(joined(buffer.after(ReplayBuffer::event_id(two, 0))), "12345678");
  EXPECT_EQ(buffer.bytes(), 8u);
  EXPECT_EQ(buffer.append(one, text("later"), false), 0u);
}

TEST(ReplayBuffer, ForgetsStreamsThatEndedLongAgo) {
  ReplayBuffer buffer({});
  SteadyTime now{};
  std::string one = buffer.open();
  std::string two = buffer.open();
  buffer.append(one, text("a"), true);
  buffer.end(one, now);
  EXPECT_TRUE(buffer.after(ReplayBuffer::event_id(one, 0))->has_ended);
  buffer.forget_ended_before(now);
  EXPECT_TRUE(buffer.after(ReplayBuffer::event_id(one, 0)));
  buffer.forget_ended_before(now + std::chrono::seconds(1));
  EXPECT_FALSE(buffer.after(ReplayBuffer::event_id(one, 0)));
  EXPECT_TRUE(buffer.after(ReplayBuffer::event_id(two, 0)));
  EXPECT_EQ(buffer.bytes(), 0u);
}

TEST(ReplayBuffer, KeepsABoundedNumberOfEndedStreams) {
  ReplayBuffer buffer({.ended_streams = 2});
  std::string first = buffer.open();
  buffer.end(first, {});
  std::string second = buffer.open();
  buffer.end(second, {});
  std::string third = buffer.open();
  buffer.end(third, {});
  buffer.open();
  EXPECT_FALSE(buffer.after(ReplayBuffer::event_id(first, 0)));
  EXPECT_TRUE(buffer.after(ReplayBuffer::event_id(second, 0)));
  EXPECT_TRUE(buffer.after(ReplayBuffer::event_id(third, 0)));
}

}  // namespace
}  // namespace hive::mcp_surface
