#include "cli/exit_code.h"

#include <gtest/gtest.h>

namespace hive::cli {
namespace {

using protocol::Outcome;

TEST(ExitCode, OfAnOutcome) {
  EXPECT_EQ(exit_code_for(Outcome::success, ""), ExitCode::success);
  EXPECT_EQ(exit_code_for(Outcome::denied, "not_allowlisted"), ExitCode::denied);
  EXPECT_EQ(exit_code_for(Outcome::denied, "role"), ExitCode::denied);
  EXPECT_EQ(exit_code_for(Outcome::failure, "exit_status"), ExitCode::failure);
  EXPECT_EQ(exit_code_for(Outcome::cancelled, ""), ExitCode::unsettled);
  EXPECT_EQ(exit_code_for(Outcome::expired, ""), ExitCode::unsettled);
  EXPECT_EQ(exit_code_for(Outcome::unknown, "tunnel_broken"), ExitCode::unsettled);
}

TEST(ExitCode, OfAnAgentThatCannotBeReached) {
  for (Outcome outcome : {Outcome::denied, Outcome::failure, Outcome::expired}) {
    EXPECT_EQ(exit_code_for(outcome, "agent_offline"), ExitCode::unreachable);
    EXPECT_EQ(exit_code_for(outcome, "agent_unknown"), ExitCode::unreachable);
  }
  EXPECT_EQ(exit_code_for(Outcome::unknown, "agent_offline"), ExitCode::unsettled) << "it may have run";
  EXPECT_EQ(exit_code_for(Outcome::success, "agent_offline"), ExitCode::success);
}

TEST(ExitCode, OfAnHttpStatus) {
  EXPECT_EQ(exit_code_for_status(202, true), ExitCode::pending_approval);
  EXPECT_EQ(exit_code_for_status(401, true), ExitCode::not_authenticated);
  EXPECT_EQ(exit_code_for_status(403, true), ExitCode::denied);
  EXPECT_EQ(exit_code_for_status(429, true), ExitCode::denied);
  EXPECT_EQ(exit_code_for_status(503, true), ExitCode::unreachable);
  EXPECT_EQ(exit_code_for_status(504, true), ExitCode::unsettled);
  EXPECT_EQ(exit_code_for_status(504, false), ExitCode::unreachable);
  EXPECT_EQ(exit_code_for_status(404, false), ExitCode::error);
  EXPECT_EQ(exit_code_for_status(500, true), ExitCode::error);
}

TEST(ExitCode, NumbersNeverChange) {
  EXPECT_EQ(static_cast<int>(ExitCode::success), 0);
  EXPECT_EQ(static_cast<int>(ExitCode::error), 1);
  EXPECT_EQ(static_cast<int>(ExitCode::usage), 2);
  EXPECT_EQ(static_cast<int>(ExitCode::denied), 3);
  EXPECT_EQ(static_cast<int>(ExitCode::failure), 4);
  EXPECT_EQ(static_cast<int>(ExitCode::unreachable), 5);
  EXPECT_EQ(static_cast<int>(ExitCode::pending_approval), 6);
  EXPECT_EQ(static_cast<int>(ExitCode::not_authenticated), 7);
  EXPECT_EQ(static_cast<int>(ExitCode::unsettled), 8);
  EXPECT_EQ(static_cast<int>(ExitCode::interrupted), 130);
}

}  // namespace
}  // namespace hive::cli
