#include "gateway/calls/hive_fixture.h"

namespace hive::calls::test {
namespace {

/// Calls for an agent that is offline and due back.
class AgentWaitTest : public HiveFixture {
 protected:
  AgentWaitTest() {
    connect("edge-1")->break_down();
    settle();
  }

  struct Begun {
    std::shared_ptr<std::optional<CallResult>> result = std::make_shared<std::optional<CallResult>>();
    std::shared_ptr<RunningCall> running;
  };

  Begun begin(std::chrono::milliseconds patience, std::string tool = "get_metrics", std::string agent = "edge-1") {
    Begun begun;
    Call call = call_of(alice_, std::move(agent), std::move(tool), "{}");
    call.wait_for_agent = patience;
    begun.running = funnel_->run(worker(), std::move(call),
                                 [result = begun.result](CallResult ended) { *result = std::move(ended); });
    settle();
    return begun;
  }

  const CallResult& end_of(const Begun& begun) {
    auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (!begun.result->has_value() && std::chrono::steady_clock::now() < deadline) {
      worker().context().restart();
      worker().context().run_one_for(std::chrono::milliseconds(20));
    }
    EXPECT_TRUE(begun.result->has_value());
    static const CallResult none;
    return begun.result->has_value() ? **begun.result : none;
  }

  policy::Principal alice_ = person("alice");
};

TEST_F(AgentWaitTest, ACallRunsOnceItsAgentIsBack) {
  Begun begun = begin(std::chrono::minutes(5));
  EXPECT_FALSE(begun.result->has_value());
  EXPECT_TRUE(log_.records().empty()) << "nothing is recorded while nothing has happened";
  auto channel = connect("edge-1");
  settle();
  ASSERT_EQ(calls_sent(*channel), 1U);
  answer(*channel, R"({"content":[]})");
  EXPECT_EQ(end_of(begun).outcome, protocol::Outcome::success);
  EXPECT_EQ(actions(), std::vector<std::string>{"tool_call"});
}

TEST_F(AgentWaitTest, TheIntentIsRecordedWhenTheCallLeaves) {
  Begun begun = begin(std::chrono::minutes(5), "run_command");
  EXPECT_TRUE(log_.records().empty());
  auto channel = connect("edge-1");
  settle();
  ASSERT_EQ(log_.records().size(), 1U);
  EXPECT_EQ(log_.records()[0].kind, audit::RecordKind::intent);
  EXPECT_EQ(calls_sent(*channel), 1U);
}

TEST_F(AgentWaitTest, ACallWhoseAgentDoesNotComeEndsAsOffline) {
  Begun begun = begin(std::chrono::milliseconds(1));
  const CallResult& result = end_of(begun);
  EXPECT_EQ(result.outcome, protocol::Outcome::denied);
  EXPECT_EQ(result.reason, "agent_offline");
  EXPECT_EQ(actions(), std::vector<std::string>{"tool_call:agent_offline"});
}

TEST_F(AgentWaitTest, NobodyWaitsForAnAgentThatNobodyKnows) {
  Begun begun = begin(std::chrono::minutes(5), "get_metrics", "edge-9");
  ASSERT_TRUE(begun.result->has_value());
  EXPECT_EQ((*begun.result)->reason, "agent_unknown");
}

TEST_F(AgentWaitTest, NobodyWaitsForAnAgentWhoseKeyIsGone) {
  fleet_->set_enrolled({});
  Begun begun = begin(std::chrono::minutes(5));
  ASSERT_TRUE(begun.result->has_value());
  EXPECT_EQ((*begun.result)->reason, "agent_offline");
}

TEST_F(AgentWaitTest, AnAgentThatHasAKeyAndNeverConnectedIsWaitedFor) {
  fleet_->set_enrolled(std::vector<std::string>{"edge-1", "edge-2"});
  Begun begun = begin(std::chrono::minutes(5), "get_metrics", "edge-2");
  EXPECT_FALSE(begun.result->has_value());
  EXPECT_EQ(calls_sent(*connect("edge-2")), 1U);
}

TEST_F(AgentWaitTest, ACallThatIsWithdrawnWhileItWaitsIsNeverSent) {
  Begun begun = begin(std::chrono::minutes(5));
  begun.running->cancel("not wanted any more");
  EXPECT_EQ(end_of(begun).outcome, protocol::Outcome::cancelled);
  EXPECT_EQ(calls_sent(*connect("edge-1")), 0U);
  EXPECT_EQ(actions(), std::vector<std::string>{"tool_call:cancelled"});
}

TEST_F(AgentWaitTest, TheGatesAreAskedBeforeTheWait) {
  alice_ = person("alice", policy::Role::read_only);
  Begun begun = begin(std::chrono::minutes(5));
  ASSERT_TRUE(begun.result->has_value());
  EXPECT_EQ((*begun.result)->reason, "role");
}

TEST_F(AgentWaitTest, RulesThatChangeWhileACallWaitsHoldForIt) {
  Begun begun = begin(std::chrono::minutes(5), "run_command");
  config::GatewayConfig stricter = config_;
  stricter.require_approval_tiers = {"write"};
  reload(stricter);
  auto channel = connect("edge-1");
  settle();
  ASSERT_TRUE(begun.result->has_value());
  EXPECT_EQ((*begun.result)->reason, "approval_required");
  EXPECT_EQ(calls_sent(*channel), 0U);
}

TEST_F(AgentWaitTest, ACredentialThatExpiresMeanwhileIsOneNoMore) {
  policy::Grant grant;
  grant.identity = "alice";
  grant.expires_at = clock_.wall_now() + std::chrono::seconds(60);
  alice_.grant = std::make_shared<const policy::Grant>(grant);
  Begun begun = begin(std::chrono::minutes(5));
  clock_.advance(std::chrono::seconds(60));
  auto channel = connect("edge-1");
  settle();
  EXPECT_EQ(end_of(begun).reason, "credential_expired");
  EXPECT_EQ(calls_sent(*channel), 0U);
}

TEST_F(AgentWaitTest, ACredentialThatIsTakenAwayMeanwhileIsOneNoMore) {
  bool is_accepted = true;
  funnel_->set_refresh([&](const policy::Principal& earlier) -> std::optional<policy::Principal> {
    return is_accepted ? std::optional(earlier) : std::nullopt;
  });
  Begun begun = begin(std::chrono::minutes(5));
  is_accepted = false;
  auto channel = connect("edge-1");
  settle();
  EXPECT_EQ(end_of(begun).reason, "credential_revoked");
  EXPECT_EQ(calls_sent(*channel), 0U);
}

TEST_F(AgentWaitTest, ARoleThatIsTakenAwayMeanwhileIsOneNoMore) {
  funnel_->set_refresh([](const policy::Principal&) { return person("alice", policy::Role::read_only); });
  Begun begun = begin(std::chrono::minutes(5));
  auto channel = connect("edge-1");
  settle();
  EXPECT_EQ(end_of(begun).reason, "role");
  EXPECT_EQ(calls_sent(*channel), 0U);
}

TEST_F(AgentWaitTest, TooManyWaitersAreToldSo) {
  std::vector<Begun> waiting;
  for (std::size_t i = 0; i < fleet::WaitingRoom::Limits().per_agent; ++i)
    waiting.push_back(begin(std::chrono::minutes(5)));
  Begun late = begin(std::chrono::minutes(5));
  ASSERT_TRUE(late.result->has_value());
  EXPECT_EQ((*late.result)->outcome, protocol::Outcome::denied);
  EXPECT_EQ((*late.result)->reason, "too_many_waiting");
  EXPECT_EQ(calls_sent(*connect("edge-1")), waiting.size());
}

TEST_F(AgentWaitTest, OneCallerLeavesRoomForOthers) {
  std::vector<Begun> waiting;
  for (std::size_t i = 0; i < Funnel::Options().max_waiting_per_caller; ++i) {
    std::string agent = "away-" + std::to_string(i / fleet::WaitingRoom::Limits().per_agent);
    if (fleet_->find(agent) == nullptr) connect(agent)->break_down();
    waiting.push_back(begin(std::chrono::minutes(5), "get_metrics", agent));
    ASSERT_FALSE(waiting.back().result->has_value());
  }
  Begun late = begin(std::chrono::minutes(5));
  ASSERT_TRUE(late.result->has_value());
  EXPECT_EQ((*late.result)->reason, "too_many_waiting");
  alice_ = person("bob");
  EXPECT_FALSE(begin(std::chrono::minutes(5)).result->has_value()) << "somebody else still may";
  waiting.front().running->cancel("enough");
  settle();
  alice_ = person("alice");
  EXPECT_FALSE(begin(std::chrono::minutes(5)).result->has_value()) << "a wait that has ended makes room";
}

TEST_F(AgentWaitTest, APatienceAboveTheLimitIsRefused) {
  Begun begun = begin(std::chrono::hours(1));
  ASSERT_TRUE(begun.result->has_value());
  EXPECT_EQ((*begun.result)->reason, "wait_too_long");
}

TEST_F(AgentWaitTest, AGatewayThatStopsWaitsForNobody) {
  Begun begun = begin(std::chrono::minutes(5));
  bool drained = false;
  funnel_->drain([&] { drained = true; });
  EXPECT_FALSE(drained);
  funnel_->cancel_all("the gateway stops");
  settle();
  EXPECT_TRUE(drained);
  EXPECT_EQ(end_of(begun).outcome, protocol::Outcome::cancelled);
}

}  // namespace
}  // namespace hive::calls::test
