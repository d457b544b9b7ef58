// How a request for many agents is bounded, stopped and withdrawn.

#include "gateway/calls/fan_out.h"
#include "gateway/calls/fan_out_fixture.h"

namespace hive::calls::test {
namespace {

using protocol::Outcome;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

using FanOutBoundsTest = FanOutTest;

TEST_F(FanOutBoundsTest, NoMoreCallsRunAtOnceThanWereAskedFor) {
  std::vector<Channel> channels;
  for (int i = 1; i <= 5; ++i)
    channels.push_back(connect(fmt::format("edge-{}", i)));
  auto running_calls = [&channels] {
    std::size_t sent = 0;
    for (const Channel& channel : channels)
      sent += calls_sent(*channel);
    return sent;
  };
  FanOutRequest request = request_for_all();
  request.concurrency = 2;
  start(std::move(request));
  EXPECT_EQ(running_calls(), 2U);
  answer_call(*channels[1]);
  EXPECT_EQ(running_calls(), 3U);
  EXPECT_EQ(calls_sent(*channels[2]), 1U);
  EXPECT_THAT(sink_->order(), ElementsAre("edge-2"));
  for (std::size_t i : {0U, 2U, 3U, 4U})
    answer_call(*channels[i]);
  ASSERT_TRUE(sink_->end_.has_value());
  EXPECT_EQ(sink_->end_->counts.of(Outcome::success), 5U);
}

TEST_F(FanOutBoundsTest, StopsAfterSoManyErrorsAndAccountsForTheRest) {
  for (int i = 1; i <= 4; ++i)
    connect_answering(fmt::format("edge-{}", i), failed);
  Channel last = connect("edge-5");
  FanOutRequest request = request_for_all();
  request.concurrency = 1;
  request.stop_after_errors = 2;
  start(std::move(request));
  ASSERT_TRUE(sink_->end_.has_value());
  EXPECT_EQ(sink_->end_->stopped_by, "fan_out_stopped");
  EXPECT_EQ(sink_->end_->not_started, 3U);
  EXPECT_EQ(sink_->of("edge-3").outcome, Outcome::cancelled);
  EXPECT_EQ(sink_->of("edge-5").reason, "fan_out_stopped");
  EXPECT_EQ(calls_sent(*last), 0U);
  ASSERT_EQ(records_of("fan_out_ended").size(), 1U);
  EXPECT_EQ(records_of("fan_out_ended")[0].reason, "fan_out_stopped");
  EXPECT_EQ(records_of("fan_out_ended")[0].detail, "5 agents: 2 failure, 3 cancelled; 3 of them were not started");
}

TEST_F(FanOutBoundsTest, WhatRunsWhenItStopsIsWaitedFor) {
  connect_answering("edge-1", failed);
  Channel slow = connect("edge-2");
  connect("edge-3");
  FanOutRequest request = request_for_all();
  request.concurrency = 2;
  request.stop_after_errors = 1;
  start(std::move(request));
  EXPECT_EQ(sink_->of("edge-3").reason, "fan_out_stopped");
  EXPECT_FALSE(sink_->end_.has_value());
  answer_call(*slow);
  ASSERT_TRUE(sink_->end_.has_value());
  EXPECT_EQ(sink_->of("edge-2").outcome, Outcome::success);
}

TEST_F(FanOutBoundsTest, AtTheDeadlineWhatRunsIsWithdrawnAndTheRestHasExpired) {
  Channel hung = connect("edge-1");
  connect_answering("edge-2");
  FanOutRequest request = request_for_all();
  request.concurrency = 1;
  request.deadline = std::chrono::milliseconds(40);
  start(std::move(request));
  ASSERT_TRUE(eventually([&] { return sink_->by_agent_.contains("edge-2"); }));
  EXPECT_EQ(sink_->of("edge-2").outcome, Outcome::expired);
  EXPECT_EQ(sink_->of("edge-2").reason, "fan_out_deadline");
  ASSERT_TRUE(eventually([&] {
    return std::ranges::any_of(hung->sent(), [](const std::string& line) { return line.contains("cancelled"); });
  }));
  EXPECT_FALSE(sink_->end_.has_value()) << "the agent has not said yet that it stopped";
  answer_call(*hung, R"({"content":[],"isError":true,"_meta":{"myrmex-hive/outcome":"cancelled"}})");
  ASSERT_TRUE(eventually([&] { return sink_->end_.has_value(); }));
  EXPECT_EQ(sink_->of("edge-1").outcome, Outcome::cancelled);
  EXPECT_EQ(sink_->end_->stopped_by, "fan_out_deadline");
}

TEST_F(FanOutBoundsTest, ACallerWhoWithdrawsEndsWhatRunsAndStartsNoMore) {
  Channel running_agent = connect("edge-1");
  Channel waiting_agent = connect("edge-2");
  FanOutRequest request = request_for_all();
  request.concurrency = 1;
  auto running = start(std::move(request));
  running->cancel("the client has gone");
  settle();
  EXPECT_THAT(running_agent->sent(), Contains(HasSubstr("cancelled")));
  EXPECT_EQ(calls_sent(*waiting_agent), 0U);
  EXPECT_EQ(sink_->of("edge-2").reason, "fan_out_cancelled");
  answer_call(*running_agent, R"({"content":[],"isError":true,"_meta":{"myrmex-hive/outcome":"cancelled"}})");
  ASSERT_TRUE(sink_->end_.has_value());
  EXPECT_EQ(sink_->end_->counts.of(Outcome::cancelled), 2U);
  EXPECT_EQ(sink_->end_->stopped_by, "fan_out_cancelled");
}

TEST_F(FanOutBoundsTest, AWithdrawalWithoutAReasonEndsWhatRunsAsWell) {
  Channel channel = connect("edge-1");
  start(request_for_all())->cancel("");
  settle();
  EXPECT_THAT(channel->sent(), Contains(HasSubstr("cancelled")));
}

TEST_F(FanOutBoundsTest, ACredentialThatIsTakenAwayStartsNoMoreCalls) {
  bool is_accepted = true;
  funnel_->set_refresh([&](const policy::Principal& earlier) -> std::optional<policy::Principal> {
    return is_accepted ? std::optional(earlier) : std::nullopt;
  });
  Channel first = connect("edge-1");
  Channel second = connect("edge-2");
  FanOutRequest request = request_for_all();
  request.concurrency = 1;
  start(std::move(request));
  is_accepted = false;
  answer_call(*first);
  ASSERT_TRUE(sink_->end_.has_value());
  EXPECT_EQ(sink_->of("edge-1").outcome, Outcome::success) << "it was sent by a credential that held";
  EXPECT_EQ(sink_->of("edge-2").outcome, Outcome::denied);
  EXPECT_EQ(sink_->of("edge-2").reason, "credential_revoked");
  EXPECT_EQ(sink_->end_->stopped_by, "credential_revoked");
  EXPECT_EQ(sink_->end_->not_started, 1U);
  EXPECT_EQ(calls_sent(*second), 0U);
}

TEST_F(FanOutBoundsTest, ACredentialThatExpiresStartsNoMoreCalls) {
  policy::Grant grant;
  grant.identity = "alice";
  grant.expires_at = clock_.wall_now() + std::chrono::seconds(60);
  Channel first = connect("edge-1");
  Channel second = connect("edge-2");
  FanOutRequest request = request_for_all();
  request.principal.grant = std::make_shared<const policy::Grant>(grant);
  request.concurrency = 1;
  start(std::move(request));
  clock_.advance(std::chrono::seconds(60));
  answer_call(*first);
  ASSERT_TRUE(sink_->end_.has_value());
  EXPECT_EQ(sink_->of("edge-2").reason, "credential_expired");
  EXPECT_EQ(calls_sent(*second), 0U);
}

TEST_F(FanOutBoundsTest, AScopeThatShrinksHoldsForTheCallsThatAreLeft) {
  std::optional<policy::Scope> scope;
  funnel_->set_refresh([&](const policy::Principal&) { return person("alice", policy::Role::operator_, scope); });
  Channel first = connect("edge-1");
  Channel second = connect("edge-2");
  FanOutRequest request = request_for_all();
  request.concurrency = 1;
  start(std::move(request));
  scope = policy::Scope{.agents = {"edge-1"}, .tags = {}, .tools = {"*"}, .field = "scoped_tokens[0]"};
  answer_call(*first);
  ASSERT_TRUE(sink_->end_.has_value());
  EXPECT_EQ(sink_->of("edge-2").reason, "scope");
  EXPECT_EQ(calls_sent(*second), 0U);
}

TEST_F(FanOutBoundsTest, AReaderWithoutRoomHoldsBackNewCalls) {
  connect_answering("edge-1");
  Channel second = connect_answering("edge-2");
  sink_ = std::make_shared<Collected>();
  sink_->room_ = false;
  auto running = fan_outs().start(worker(), request_for_all(), sink_);
  ASSERT_TRUE(running.has_value());
  settle();
  EXPECT_EQ(calls_sent(*second), 0U);
  sink_->room_ = true;
  (*running)->resume();
  settle();
  EXPECT_TRUE(sink_->end_.has_value());
}

TEST_F(FanOutBoundsTest, NobodyIsAskedToApproveHundredsOfCallsAtOnce) {
  config_.require_approval_tiers = {"write"};
  reload(config_);
  std::vector<std::string> agents;
  for (std::size_t i = 0; i <= FanOuts::max_approvals; ++i)
    agents.push_back(fmt::format("edge-{}", i));
  FanOutRequest request = request_for(agents);
  request.tool = "run_command";
  EXPECT_EQ(refused(std::move(request)).reason, "too_many_approvals");
  EXPECT_THAT(approvals_->list(person("root", policy::Role::admin), true), IsEmpty());
}

TEST_F(FanOutBoundsTest, RequestsOfOneIdentityAreBoundedAndOthersAreNotHeldUp) {
  fan_out_options_.max_running_per_identity = 1;
  Channel channel = connect("edge-1");
  auto first = std::make_shared<Collected>();
  ASSERT_TRUE(fan_outs().start(worker(), request_for_all(), first).has_value());
  settle();
  EXPECT_EQ(refused(request_for_all()).reason, "fan_outs_full");
  FanOutRequest of_bob = request_for_all();
  of_bob.principal = person("bob");
  EXPECT_TRUE(fan_outs().start(worker(), std::move(of_bob), std::make_shared<Collected>()).has_value());
  answer_call(*channel);
  ASSERT_TRUE(first->end_.has_value());
  EXPECT_TRUE(fan_outs().start(worker(), request_for_all(), std::make_shared<Collected>()).has_value());
  channel->break_down();
  settle();
}

TEST_F(FanOutBoundsTest, WhatIsOutOfBoundsIsRefused) {
  std::vector<std::string> agents;
  for (std::size_t i = 0; i <= FanOuts::max_agents; ++i)
    agents.push_back(fmt::format("edge-{}", i));
  EXPECT_EQ(refused(request_for(std::move(agents))).reason, "too_many_agents");
  FanOutRequest wide = request_for({"edge-1"});
  wide.concurrency = FanOuts::max_concurrency + 1;
  EXPECT_EQ(refused(std::move(wide)).reason, "invalid_request");
  FanOutRequest large = request_for({"edge-1"});
  large.arguments = R"({"x":")" + std::string(FanOuts::max_arguments_bytes, 'x') + R"("})";
  EXPECT_EQ(refused(std::move(large)).reason, "arguments_too_large");
  FanOutRequest globs = request_for(std::vector<std::string>(257, "edge-*"));
  EXPECT_EQ(refused(std::move(globs)).reason, "invalid_targets");
}

TEST_F(FanOutBoundsTest, WhenTheGatewayStopsTheRestIsNotTriedOneByOne) {
  Channel first = connect("edge-1");
  for (int i = 2; i <= 4; ++i)
    connect(fmt::format("edge-{}", i));
  FanOutRequest request = request_for_all();
  request.concurrency = 1;
  start(std::move(request));
  bool drained = false;
  funnel_->drain([&drained] { drained = true; });
  answer_call(*first);
  ASSERT_TRUE(sink_->end_.has_value());
  EXPECT_EQ(sink_->end_->stopped_by, "draining");
  EXPECT_EQ(sink_->end_->not_started, 2U);
  EXPECT_EQ(sink_->of("edge-4").reason, "draining");
  EXPECT_TRUE(drained);
}

}  // namespace
}  // namespace hive::calls::test
