#include "gateway/calls/fan_out.h"

#include "gateway/calls/fan_out_fixture.h"

namespace hive::calls::test {
namespace {

using protocol::Outcome;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

TEST_F(FanOutTest, EveryAgentEndsInOneOutcomeAndTheEndCountsThem) {
  connect_answering("edge-1");
  connect_answering("edge-2", failed);
  start(request_for({"edge-2", "edge-1", "edge-3", "edge-1"}));
  ASSERT_TRUE(sink_->end_.has_value());
  EXPECT_THAT(sink_->order(), UnorderedElementsAre("edge-1", "edge-2", "edge-3"));
  EXPECT_EQ(sink_->of("edge-1").outcome, Outcome::success);
  EXPECT_EQ(sink_->of("edge-1").body, fine);
  EXPECT_EQ(sink_->of("edge-2").outcome, Outcome::failure);
  EXPECT_EQ(sink_->of("edge-3").reason, "agent_unknown");
  EXPECT_EQ(sink_->end_->counts.of(Outcome::success), 1U);
  EXPECT_EQ(sink_->end_->counts.of(Outcome::failure), 1U);
  EXPECT_EQ(sink_->end_->counts.of(Outcome::denied), 1U);
  EXPECT_EQ(sink_->end_->not_started, 0U);
  EXPECT_EQ(sink_->end_->stopped_by, "");
}

TEST_F(FanOutTest, EachCallGoesThroughTheFunnelAndStandsInTheLogUnderOneId) {
  connect_answering("edge-1");
  connect_answering("edge-2");
  FanOutRequest request = request_for({"edge-1", "edge-2"});
  request.tool = "run_command";
  request.arguments = R"({"name":"uptime"})";
  start(std::move(request));
  std::vector<audit::Record> calls = records_of("tool_call");
  ASSERT_EQ(calls.size(), 4U);  // an intent and an outcome each
  for (const audit::Record& call : calls)
    EXPECT_EQ(call.request_id, "r-1");
  ASSERT_EQ(records_of("fan_out_started").size(), 1U);
  ASSERT_EQ(records_of("fan_out_ended").size(), 1U);
  EXPECT_EQ(records_of("fan_out_started")[0].detail, "2 agents: agents edge-1,edge-2");
  EXPECT_EQ(records_of("fan_out_ended")[0].detail, "2 agents: 2 success");
  EXPECT_EQ(records_of("fan_out_ended")[0].request_id, "r-1");
}

TEST_F(FanOutTest, AllMeansWhoIsOnlineAndTellsHowManyAreNot) {
  connect_answering("edge-2");
  connect_answering("edge-1");
  connect("edge-3")->break_down();
  settle();
  auto running = start(request_for_all());
  EXPECT_THAT(running->agents(), ElementsAre("edge-1", "edge-2"));
  EXPECT_EQ(running->left_out(), 1U);

  FanOutRequest with_offline = request_for_all();
  with_offline.targets.with_offline = true;
  EXPECT_THAT(start(std::move(with_offline))->agents(), ElementsAre("edge-1", "edge-2", "edge-3"));
  EXPECT_EQ(sink_->of("edge-3").reason, "agent_offline");
}

TEST_F(FanOutTest, ACallMayWaitForAnAgentThatIsDueBack) {
  connect("edge-1")->break_down();
  settle();
  FanOutRequest request = request_for_all();
  request.wait_for_agent = std::chrono::minutes(1);
  EXPECT_THAT(start(std::move(request))->agents(), ElementsAre("edge-1")) << "who waits means those that are away too";
  EXPECT_FALSE(sink_->end_.has_value());
  Channel back = connect("edge-1");
  settle();
  answer_call(*back);
  ASSERT_TRUE(sink_->end_.has_value());
  EXPECT_EQ(sink_->of("edge-1").outcome, Outcome::success);
}

TEST_F(FanOutTest, WhoIsWaitedForHoldsUpNobodyWhoIsThere) {
  connect("edge-1")->break_down();
  connect_answering("edge-2");
  FanOutRequest request = request_for_all();
  request.wait_for_agent = std::chrono::minutes(1);
  request.concurrency = 1;
  auto running = start(std::move(request));
  EXPECT_THAT(running->agents(), ElementsAre("edge-1", "edge-2"));
  EXPECT_EQ(sink_->of("edge-2").outcome, Outcome::success);
  running->cancel("enough");
  settle();
  ASSERT_TRUE(sink_->end_.has_value());
  EXPECT_EQ(sink_->of("edge-1").outcome, Outcome::cancelled);
}

TEST_F(FanOutTest, GlobsAndTagsMeanTheirAgentsOnceEach) {
  config_.agent_tags = {{"edge-1", {"web", "eu"}}, {"edge-2", {"web"}}, {"lab-1", {"eu"}}};
  reload(config_);
  for (const char* id : {"edge-1", "edge-2", "lab-1", "lab-2"})
    connect_answering(id);
  FanOutRequest request = request_for({"lab-2", "edge-*"});
  request.targets.tags = {"eu"};
  EXPECT_THAT(start(std::move(request))->agents(), ElementsAre("lab-2", "edge-1", "edge-2", "lab-1"));
}

TEST_F(FanOutTest, AScopeIsNamedForWhoIsNamedAndSilentForTheRest) {
  connect_answering("edge-1");
  connect_answering("edge-2");
  policy::Scope scope{.agents = {"edge-1"}, .tags = {}, .tools = {"*"}, .field = "scoped_tokens[0]"};
  FanOutRequest named = request_for({"edge-1", "edge-2"});
  named.principal = person("alice", policy::Role::operator_, scope);
  FanOutRequest all = request_for_all();
  all.principal = named.principal;
  start(std::move(named));
  EXPECT_EQ(sink_->of("edge-1").outcome, Outcome::success);
  EXPECT_EQ(sink_->of("edge-2").outcome, Outcome::denied);
  EXPECT_EQ(sink_->of("edge-2").reason, "scope");
  EXPECT_THAT(start(std::move(all))->agents(), ElementsAre("edge-1"));
}

TEST_F(FanOutTest, NobodyAtAllIsARefusalAndNoEmptySuccess) {
  connect("edge-1")->break_down();
  settle();
  EXPECT_EQ(refused(request_for({})).reason, "no_target");
  EXPECT_EQ(refused(request_for_all()).reason, "no_target");
  EXPECT_EQ(refused(request_for({"edge-1", "web-*"})).reason, "no_target");
  FanOutRequest both = request_for({"edge-1"});
  both.targets.all = true;
  EXPECT_EQ(refused(std::move(both)).reason, "invalid_targets");
  EXPECT_EQ(refused(request_for({"../etc"})).reason, "invalid_targets");
  EXPECT_EQ(records_of("fan_out_refused").size(), 5U);
  EXPECT_THAT(records_of("tool_call"), IsEmpty());
}

TEST_F(FanOutTest, ARoleThatMayNotCallIsRefusedOnceAndNotOnceAnAgent) {
  connect_answering("edge-1");
  connect_answering("edge-2");
  FanOutRequest request = request_for_all();
  request.principal = person("bob", policy::Role::read_only);
  EXPECT_EQ(refused(std::move(request)).reason, "role");
  ASSERT_EQ(records_of("fan_out_refused").size(), 1U);
  EXPECT_EQ(records_of("fan_out_refused")[0].reason, "role");
  EXPECT_EQ(records_of("fan_out_refused")[0].outcome, Outcome::denied);
}

TEST_F(FanOutTest, CallsThatWaitForPeopleAreNoErrorsAndHaveTheirId) {
  config_.require_approval_tiers = {"write"};
  reload(config_);
  Channel channel = connect("edge-1");
  connect("edge-2");
  FanOutRequest request = request_for_all();
  request.tool = "run_command";
  request.arguments = R"({"name":"reboot"})";
  request.stop_after_errors = 1;
  request.concurrency = 1;
  start(std::move(request));
  ASSERT_TRUE(sink_->end_.has_value());
  EXPECT_EQ(sink_->end_->counts.approval_required, 2U);
  EXPECT_EQ(sink_->of("edge-1").approval_id.size(), 32U);
  EXPECT_NE(sink_->of("edge-1").approval_id, sink_->of("edge-2").approval_id);
  EXPECT_EQ(calls_sent(*channel), 0U);
}

TEST_F(FanOutTest, ARateLimitIsReportedWithTheTimeToWait) {
  config_.rate_limit_per_minute = 1;
  reload(config_);
  connect_answering("edge-1");
  connect_answering("edge-2");
  start(request_for({"edge-1"}));
  start(request_for({"edge-1", "edge-2"}));
  EXPECT_EQ(sink_->of("edge-1").reason, "rate_limited");
  EXPECT_GT(sink_->of("edge-1").retry_after.count(), 0);
  EXPECT_EQ(sink_->of("edge-2").outcome, Outcome::success);
}

TEST_F(FanOutTest, APreviewSaysWhatThePolicyWouldAndAsksNobody) {
  config_.require_approval_tiers = {"write"};
  reload(config_);
  Channel channel = connect("edge-1");
  connect("edge-2");
  policy::Scope scope{.agents = {"edge-1"}, .tags = {}, .tools = {"*"}, .field = "scoped_tokens[0]"};
  FanOutRequest request = request_for({"edge-1", "edge-2"});
  request.principal = person("alice", policy::Role::operator_, scope);
  request.tool = "run_command";
  auto preview = fan_outs().preview(request);
  ASSERT_TRUE(preview.has_value()) << preview.error().body;
  EXPECT_EQ(preview->tier, protocol::Tier::write);
  ASSERT_EQ(preview->agents.size(), 2U);
  EXPECT_EQ(preview->agents[0].online, true);
  EXPECT_EQ(preview->agents[0].verdict, policy::Verdict::ask);
  EXPECT_EQ(preview->agents[1].online, std::nullopt) << "whether it is online is nothing for this caller";
  EXPECT_EQ(preview->agents[1].verdict, policy::Verdict::deny);
  EXPECT_EQ(preview->agents[1].reason, "scope");
  EXPECT_EQ(calls_sent(*channel), 0U);
  EXPECT_THAT(log_.records(), IsEmpty());
}

}  // namespace
}  // namespace hive::calls::test
