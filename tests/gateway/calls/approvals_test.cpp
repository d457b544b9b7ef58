#include "gateway/calls/approvals.h"

#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gateway/calls/hive_fixture.h"

namespace hive::calls {
namespace {

using protocol::Outcome;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class ApprovalsTest : public test::HiveFixture {
 protected:
  ApprovalsTest() {
    config::GatewayConfig config;
    config.source_path = "gateway.json";
    config.require_approval_tiers = {"write", "admin"};
    reload(config);
    channel_ = connect("edge-1");
  }

  std::string ask(Call call) {
    auto result = run(std::move(call));
    EXPECT_TRUE(result.has_value());
    EXPECT_EQ(result->reason, "approval_required") << result->body;
    return result->approval_id;
  }

  void restart() {
    auto config = config_;
    stop();
    make_hive(config);
  }

  std::shared_ptr<net::ssh::FakeLineChannel> channel_;
  const policy::Principal alice_ = person("alice");
  const policy::Principal bob_ = person("bob", policy::Role::admin);
};

TEST_F(ApprovalsTest, TheCallRunsOnceWhenSomebodyElseAgreesAndItsRequesterGetsTheResult) {
  std::string id = ask(call_of(alice_));
  EXPECT_EQ(calls_sent(*channel_), 0U);
  auto decided = decide(bob_, id, ApprovalAction::approve);
  ASSERT_TRUE(decided) << decided.error().message;
  EXPECT_EQ((*decided)->status, ApprovalStatus::approved);
  EXPECT_EQ(calls_sent(*channel_), 1U);
  ASSERT_TRUE(result_of(alice_, id));
  EXPECT_FALSE(result_of(alice_, id)->has_value()) << "it has not ended yet";
  answer(*channel_, R"({"content":[{"type":"text","text":"done"}]})");
  auto result = result_of(alice_, id);
  ASSERT_TRUE(result && result->has_value());
  EXPECT_EQ((*result)->outcome, Outcome::success);
  EXPECT_EQ((*result)->body, R"({"content":[{"type":"text","text":"done"}]})");

  auto twice = decide(bob_, id, ApprovalAction::approve);
  ASSERT_FALSE(twice);
  EXPECT_EQ(twice.error().code, ErrorCode::already_exists);
  EXPECT_EQ(calls_sent(*channel_), 1U);
  EXPECT_THAT(actions(), ElementsAre("approval_requested:approval_required", "approval_granted", "tool_call",
                                     "tool_call", "approval_refused:approval_decided"));
  auto records = log_.records();
  EXPECT_EQ(records[0].principal, "token:of-alice");
  EXPECT_EQ(records[1].principal, "token:of-bob");
  for (std::size_t i : {0U, 1U, 2U, 3U})
    EXPECT_EQ(records[i].call_id, records[0].call_id) << "one call, one id";
}

TEST_F(ApprovalsTest, NobodyApprovesTheirOwnRequestByAnyCredential) {
  std::string id = ask(call_of(alice_));
  policy::Principal other_credential = person("alice", policy::Role::admin);
  other_credential.name = "token:another";
  auto decided = decide(other_credential, id, ApprovalAction::approve);
  ASSERT_FALSE(decided);
  EXPECT_EQ(decided.error().code, ErrorCode::permission_denied);
  EXPECT_THAT(decided.error().message, StartsWith("own_request"));
  EXPECT_THAT(actions(), Contains("approval_refused:own_request"));
  EXPECT_EQ(calls_sent(*channel_), 0U);
}

TEST_F(ApprovalsTest, AnOperatorCannotApprove) {
  std::string id = ask(call_of(alice_));
  auto decided = decide(person("carol"), id, ApprovalAction::approve);
  ASSERT_FALSE(decided);
  EXPECT_THAT(decided.error().message, StartsWith("role"));
}

TEST_F(ApprovalsTest, AnotherDigestThanTheShownOneIsRefused) {
  std::string id = ask(call_of(alice_));
  auto decided = decide(bob_, id, ApprovalAction::approve, std::string(64, 'a'));
  ASSERT_FALSE(decided);
  EXPECT_EQ(decided.error().code, ErrorCode::invalid_argument);
  std::string digest = approvals_->find(bob_, id)->digest;
  EXPECT_TRUE(decide(bob_, id, ApprovalAction::approve, digest));
}

TEST_F(ApprovalsTest, AnAgentWithAnotherKeyGetsNothing) {
  std::string id = ask(call_of(alice_));
  auto replaced = std::make_shared<net::ssh::FakeLineChannel>(worker(), "edge-1");
  replaced->set_key("SHA256:another");
  fleet_->add(replaced);
  poll();
  ASSERT_TRUE(decide(bob_, id, ApprovalAction::approve));
  EXPECT_EQ(calls_sent(*replaced), 0U);
  auto result = result_of(alice_, id);
  ASSERT_TRUE(result && result->has_value());
  EXPECT_EQ((*result)->outcome, Outcome::denied);
  EXPECT_EQ((*result)->reason, "agent_key_changed");
}

TEST_F(ApprovalsTest, RulesThatChangedMeanwhileEndTheRequest) {
  std::string id = ask(call_of(alice_));
  auto config = config_;
  config.risk_tiers["run_command"] = "admin";
  reload(config);
  ASSERT_TRUE(decide(bob_, id, ApprovalAction::approve));
  EXPECT_EQ(calls_sent(*channel_), 0U);
  EXPECT_EQ(approvals_->find(alice_, id)->reason, "policy_changed");
}

TEST_F(ApprovalsTest, ACredentialThatIsGoneEndsTheRequest) {
  std::string id = ask(call_of(alice_));
  refresh_ = [](const policy::Principal&) { return std::nullopt; };
  ASSERT_TRUE(decide(bob_, id, ApprovalAction::approve));
  EXPECT_EQ(calls_sent(*channel_), 0U);
  EXPECT_EQ(approvals_->find(alice_, id)->reason, "credential_revoked");
}

TEST_F(ApprovalsTest, TheRoleOfTheRequesterIsCheckedAgain) {
  std::string id = ask(call_of(alice_));
  refresh_ = [](const policy::Principal& principal) {
    policy::Principal now = principal;
    now.role = policy::Role::read_only;
    return now;
  };
  ASSERT_TRUE(decide(bob_, id, ApprovalAction::approve));
  EXPECT_EQ(calls_sent(*channel_), 0U);
  EXPECT_EQ(approvals_->find(alice_, id)->reason, "role");
}

TEST_F(ApprovalsTest, ARequestExpiresAndSaysSo) {
  std::string id = ask(call_of(alice_));
  clock_.advance(config_.approval_ttl);
  approvals_->sweep();
  settle();
  auto approval = approvals_->find(alice_, id);
  EXPECT_EQ(approval->status, ApprovalStatus::expired);
  EXPECT_EQ(approval->outcome, Outcome::expired);
  EXPECT_TRUE(approvals_->list(bob_, true).empty());
  auto decided = decide(bob_, id, ApprovalAction::approve);
  ASSERT_FALSE(decided);
  EXPECT_EQ(decided.error().code, ErrorCode::timed_out);
  EXPECT_EQ(log_.records()[1].outcome, Outcome::expired);
  EXPECT_EQ(calls_sent(*channel_), 0U);
}

TEST_F(ApprovalsTest, WhatHasExpiredIsRefusedEvenBeforeItIsSwept) {
  std::string id = ask(call_of(alice_));
  clock_.advance(config_.approval_ttl);
  auto decided = decide(bob_, id, ApprovalAction::approve);
  ASSERT_FALSE(decided);
  EXPECT_EQ(decided.error().code, ErrorCode::timed_out);
  EXPECT_EQ(approvals_->find(alice_, id)->status, ApprovalStatus::expired);
}

TEST_F(ApprovalsTest, AStepOfTheWallClockMovesNoDeadline) {
  std::string id = ask(call_of(alice_));
  clock_.step_wall(std::chrono::hours(5));
  approvals_->sweep();
  settle();
  EXPECT_EQ(approvals_->find(alice_, id)->status, ApprovalStatus::pending);
}

TEST_F(ApprovalsTest, PendingRequestsSurviveARestart) {
  std::string id = ask(call_of(alice_));
  restart();
  auto kept = approvals_->find(alice_, id);
  ASSERT_NE(kept, nullptr);
  EXPECT_EQ(kept->status, ApprovalStatus::pending);
  EXPECT_EQ(kept->subject.arguments, R"({"name":"reboot"})");
  EXPECT_EQ(kept->requester.identity(), "alice");
  ASSERT_TRUE(decide(bob_, id, ApprovalAction::approve));
  EXPECT_EQ(calls_sent(*channel_), 1U);
  answer(*channel_, "{}");
  restart();
  auto result = result_of(alice_, id);
  ASSERT_TRUE(result && result->has_value());
  EXPECT_EQ((*result)->outcome, Outcome::success);
  EXPECT_EQ((*result)->body, "{}");
  EXPECT_FALSE(decide(bob_, id, ApprovalAction::approve));
}

TEST_F(ApprovalsTest, WhatExpiredWhileTheGatewayWasDownIsExpired) {
  std::string id = ask(call_of(alice_));
  clock_.advance(config_.approval_ttl + std::chrono::seconds(1));
  restart();
  approvals_->sweep();
  settle();
  EXPECT_EQ(approvals_->find(alice_, id)->status, ApprovalStatus::expired);
}

TEST_F(ApprovalsTest, AnApprovedCallThatAKillInterruptedIsUnknownAndNeverRunsAgain) {
  std::string id = ask(call_of(alice_));
  ASSERT_TRUE(decide(bob_, id, ApprovalAction::approve));
  EXPECT_EQ(calls_sent(*channel_), 1U);
  // What is on disk at this moment is what a killed gateway leaves.
  for (std::string_view suffix : {"", "-wal"})
    std::filesystem::copy_file(folder_.path(fmt::format("hive.db{}", suffix)),
                               folder_.path(fmt::format("killed.db{}", suffix)));
  answer(*channel_, "{}");
  database_name_ = "killed.db";
  restart();
  settle();
  auto approval = approvals_->find(alice_, id);
  EXPECT_EQ(approval->outcome, Outcome::unknown);
  EXPECT_EQ(approval->reason, "gateway_restarted");
  EXPECT_FALSE(decide(bob_, id, ApprovalAction::approve));
  EXPECT_EQ(calls_sent(*channel_), 1U);
}

TEST_F(ApprovalsTest, ARowThatWasChangedOnDiskCannotBeApproved) {
  std::string id = ask(call_of(alice_));
  database_->run([](store::Connection& connection) {
    ASSERT_TRUE(connection.execute(R"(UPDATE approvals SET arguments = '{"name":"rm"}')"));
  });
  restart();
  auto decided = decide(bob_, id, ApprovalAction::approve);
  ASSERT_FALSE(decided);
  EXPECT_EQ(decided.error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(calls_sent(*channel_), 0U);
}

TEST_F(ApprovalsTest, TheSameCallOfTheSamePersonIsAskedOnce) {
  std::string first = ask(call_of(alice_));
  EXPECT_EQ(ask(call_of(alice_)), first);
  EXPECT_NE(ask(call_of(alice_, "edge-1", "run_command", R"({"name":"halt"})")), first);
  EXPECT_NE(ask(call_of(person("carol"))), first);
  EXPECT_EQ(approvals_->list(bob_, true).size(), 3U);
}

TEST_F(ApprovalsTest, ARejectedCallIsDeniedWithTheReasonOfWhoRefused) {
  std::string id = ask(call_of(alice_));
  ASSERT_TRUE(decide(bob_, id, ApprovalAction::reject));
  auto result = result_of(alice_, id);
  ASSERT_TRUE(result && result->has_value());
  EXPECT_EQ((*result)->outcome, Outcome::denied);
  EXPECT_EQ((*result)->reason, "approval_rejected");
  EXPECT_THAT((*result)->body, HasSubstr("bob refused to approve this call"));
  EXPECT_THAT(actions(), Contains("tool_call:approval_rejected"));
}

TEST_F(ApprovalsTest, OnlyTheRequesterWithdraws) {
  std::string id = ask(call_of(alice_));
  auto other = decide(bob_, id, ApprovalAction::withdraw);
  ASSERT_FALSE(other);
  EXPECT_THAT(other.error().message, StartsWith("not_requester"));
  ASSERT_TRUE(decide(alice_, id, ApprovalAction::withdraw));
  EXPECT_EQ(approvals_->find(alice_, id)->outcome, Outcome::cancelled);
}

TEST_F(ApprovalsTest, AsManyPeopleAsTheRuleSaysMustAgree) {
  auto config = config_;
  config.approvals_required["write"] = {.count = 2, .groups = {}};
  reload(config);
  std::string id = ask(call_of(alice_));
  ASSERT_TRUE(decide(bob_, id, ApprovalAction::approve));
  EXPECT_EQ(calls_sent(*channel_), 0U);
  EXPECT_FALSE(decide(bob_, id, ApprovalAction::approve)) << "one person counts once";
  restart();
  reload(config);
  ASSERT_TRUE(decide(person("dave", policy::Role::admin), id, ApprovalAction::approve));
  EXPECT_EQ(calls_sent(*channel_), 1U);
}

TEST_F(ApprovalsTest, OnePersonCountsOnceInWhateverSpelling) {
  auto config = config_;
  config.approvals_required["write"] = {.count = 2, .groups = {}};
  reload(config);
  std::string id = ask(call_of(alice_));
  ASSERT_TRUE(decide(bob_, id, ApprovalAction::approve));
  policy::Principal by_certificate = person("Bob", policy::Role::admin);
  by_certificate.name = "Bob";
  auto twice = decide(by_certificate, id, ApprovalAction::approve);
  ASSERT_FALSE(twice);
  EXPECT_EQ(twice.error().code, ErrorCode::already_exists);
  EXPECT_EQ(calls_sent(*channel_), 0U);
}

TEST_F(ApprovalsTest, AWordThatCannotBeRecordedEndsARequestThatNeedsMore) {
  auto config = config_;
  config.approvals_required["write"] = {.count = 2, .groups = {}};
  reload(config);
  for (auto mode : {audit::FakeLog::Mode::failing, audit::FakeLog::Mode::refusing}) {
    std::string id = ask(call_of(alice_));
    log_.set_mode(mode);
    EXPECT_FALSE(decide(bob_, id, ApprovalAction::approve));
    log_.set_mode(audit::FakeLog::Mode::at_once);
    EXPECT_EQ(approvals_->find(alice_, id)->status, ApprovalStatus::rejected);
    EXPECT_EQ(approvals_->find(alice_, id)->reason, "audit_unavailable");
    EXPECT_FALSE(decide(person("dave", policy::Role::admin), id, ApprovalAction::approve));
    EXPECT_EQ(calls_sent(*channel_), 0U);
  }
}

TEST_F(ApprovalsTest, ResultsAreForTheRequesterAndForAdmins) {
  std::string id = ask(call_of(alice_));
  auto refused = result_of(person("carol"), id);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::permission_denied);
  EXPECT_TRUE(result_of(bob_, id));
  EXPECT_EQ(result_of(alice_, std::string(32, '0')).error().code, ErrorCode::not_found);
}

TEST_F(ApprovalsTest, WhoWaitsHearsOfTheEndAtOnce) {
  std::string id = ask(call_of(alice_));
  std::optional<CallResult> heard;
  approvals_->result(worker(), alice_, id, std::chrono::seconds(30), [&](Result<std::optional<CallResult>> result) {
    ASSERT_TRUE(result);
    heard = *std::move(result);
  });
  settle();
  EXPECT_FALSE(heard.has_value());
  ASSERT_TRUE(decide(bob_, id, ApprovalAction::reject));
  ASSERT_TRUE(heard.has_value());
  EXPECT_EQ(heard->reason, "approval_rejected");
}

TEST_F(ApprovalsTest, WhatCannotBeRecordedIsNotAsked) {
  log_.set_mode(audit::FakeLog::Mode::refusing);
  auto result = run(call_of(alice_));
  ASSERT_TRUE(result.has_value());
  EXPECT_EQ(result->reason, "audit_unavailable");
  EXPECT_TRUE(result->approval_id.empty());
  EXPECT_TRUE(approvals_->list(bob_, false).empty());
}

TEST_F(ApprovalsTest, NobodyHearsOfARequestThatIsNotOnDisk) {
  log_.set_mode(audit::FakeLog::Mode::held);
  auto result = run(call_of(alice_));
  EXPECT_FALSE(result.has_value());
  EXPECT_TRUE(approvals_->list(bob_, false).empty());
  log_.set_mode(audit::FakeLog::Mode::at_once);
  log_.release();
  settle();
  EXPECT_EQ(approvals_->list(bob_, false).size(), 1U);
}

TEST_F(ApprovalsTest, AnApprovalThatCannotBeRecordedRunsNothing) {
  std::string id = ask(call_of(alice_));
  log_.set_mode(audit::FakeLog::Mode::failing);
  EXPECT_FALSE(decide(bob_, id, ApprovalAction::approve));
  EXPECT_EQ(calls_sent(*channel_), 0U);
  EXPECT_EQ(approvals_->find(alice_, id)->reason, "audit_unavailable");
}

TEST_F(ApprovalsTest, OnePersonCannotFillTheDesk) {
  for (std::size_t i = 0; i < options_.max_pending_per_principal; ++i)
    ask(call_of(alice_, "edge-1", "run_command", fmt::format(R"({{"name":"n{}"}})", i)));
  auto result = run(call_of(alice_, "edge-1", "run_command", R"({"name":"one more"})"));
  EXPECT_EQ(result->reason, "approvals_full");
  ask(call_of(person("carol")));
}

TEST_F(ApprovalsTest, OnePersonCannotFillTheDeskWithLargeArguments) {
  options_.max_arguments_bytes = 4000;
  options_.max_arguments_bytes_per_principal = 2000;
  restart();
  auto of_size = [](const policy::Principal& who, char letter) {
    return call_of(who, "edge-1", "run_command", fmt::format(R"({{"name":"{}"}})", std::string(900, letter)));
  };
  ask(of_size(alice_, 'a'));
  ask(of_size(alice_, 'b'));
  EXPECT_EQ(run(of_size(alice_, 'c'))->reason, "approvals_full");
  ask(of_size(person("carol"), 'a'));
}

TEST_F(ApprovalsTest, WhatHasEndedTakesNoPlaceFromWhatWaits) {
  options_.max_arguments_bytes = 4000;
  options_.max_ended = 3;
  restart();
  for (int i = 0; i < 20; ++i) {
    std::string arguments = fmt::format(R"({{"name":"{}"}})", std::string(900, static_cast<char>('a' + i)));
    std::string id = ask(call_of(alice_, "edge-1", "run_command", arguments));
    ASSERT_TRUE(decide(alice_, id, ApprovalAction::withdraw));
    clock_.advance(std::chrono::milliseconds(1));
    approvals_->sweep();
    settle();
    EXPECT_LE(approvals_->list(alice_, false).size(), 4U);
  }
}

TEST_F(ApprovalsTest, ARequestThatRanOutTakesNothingFromItsSuccessor) {
  std::string first = ask(call_of(alice_));
  clock_.advance(config_.approval_ttl);
  std::string second = ask(call_of(alice_));
  EXPECT_NE(second, first);
  approvals_->sweep();
  settle();
  EXPECT_EQ(ask(call_of(alice_)), second);
}

TEST_F(ApprovalsTest, NotMoreWaitForAResultThanFit) {
  options_.max_waiters = 1;
  restart();
  std::string id = ask(call_of(alice_));
  int answered = 0;
  for (int i = 0; i < 3; ++i) {
    approvals_->result(worker(), alice_, id, std::chrono::seconds(30), [&](Result<std::optional<CallResult>> result) {
      EXPECT_TRUE(result);
      ++answered;
    });
  }
  settle();
  EXPECT_EQ(answered, 2);
  ASSERT_TRUE(decide(alice_, id, ApprovalAction::withdraw));
  EXPECT_EQ(answered, 3);
}

TEST_F(ApprovalsTest, AnAgentThatIsOfflineIsNotAskedAbout) {
  auto result = run(call_of(alice_, "edge-2"));
  EXPECT_EQ(result->reason, "agent_offline");
}

TEST_F(ApprovalsTest, AForeignApprovalIdOpensNothing) {
  std::string id = ask(call_of(alice_));
  Call forged = call_of(alice_);
  forged.approval_id = id;
  EXPECT_EQ(run(std::move(forged))->reason, "approval_unknown");
  ASSERT_TRUE(decide(bob_, id, ApprovalAction::approve));
  Call again = call_of(alice_);
  again.approval_id = id;
  EXPECT_EQ(run(std::move(again))->reason, "approval_used");
  EXPECT_EQ(calls_sent(*channel_), 1U);
}

}  // namespace
}  // namespace hive::calls
