#include "gateway/surfaces/mcp/request_state.h"

#include <gtest/gtest.h>

namespace hive::mcp_surface {
namespace {

constexpr std::chrono::minutes minute{1};

TEST(RequestState, IsOpenedByWhoItWasGivenToUntilItExpires) {
  RequestStates states;
  ManualClock clock;
  StateBinding alice{"alice", operation_digest("tools/call", "x", "{}")};
  std::string state = states.seal("n", alice, clock.steady_now() + minute);
  EXPECT_TRUE(RequestStates::is_ours(state));
  EXPECT_EQ(states.open(state, alice, clock.steady_now()), "n");
  EXPECT_FALSE(states.open(state, {"bob", alice.request}, clock.steady_now()));
  EXPECT_FALSE(states.open(state, {"alice", operation_digest("tools/call", "y", "{}")}, clock.steady_now()));
  clock.advance(minute);
  EXPECT_FALSE(states.open(state, alice, clock.steady_now()));
}

TEST(RequestState, AnotherProcessOrAnotherByteOpensNothing) {
  RequestStates states;
  RequestStates others;
  ManualClock clock;
  StateBinding alice{"alice", "r"};
  std::string state = states.seal("n", alice, clock.steady_now() + minute);
  EXPECT_FALSE(others.open(state, alice, clock.steady_now()));
  for (std::size_t i = 0; i < state.size(); ++i) {
    std::string changed = state;
    changed[i] = changed[i] == 'a' ? 'b' : 'a';
    EXPECT_FALSE(states.open(changed, alice, clock.steady_now())) << i;
    EXPECT_FALSE(states.open(state.substr(0, i), alice, clock.steady_now())) << i;
  }
}

TEST(RequestState, TheOrderOfMembersIsNoDifferenceButTheirValuesAre) {
  EXPECT_EQ(operation_digest("m", "n", R"({"a":{"x":1,"y":[1,2]},"b":2})"),
            operation_digest("m", "n", R"({ "b":2, "a":{"y":[1,2],"x":1} })"));
  EXPECT_NE(operation_digest("m", "n", R"({"a":[1,2]})"), operation_digest("m", "n", R"({"a":[2,1]})"));
  EXPECT_NE(operation_digest("m", "n", R"({"a":1})"), operation_digest("m", "n", R"({"a":"1"})"));
  EXPECT_NE(operation_digest("m", "nn", "{}"), operation_digest("mn", "n", "{}"));
}

}  // namespace
}  // namespace hive::mcp_surface
