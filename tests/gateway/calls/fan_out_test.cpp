#include "gateway/calls/fan_out.h"

#include <algorithm>
#include <map>
#include <thread>

#include <gmock/gmock.h>

#include "gateway/calls/hive_fixture.h"
#include "gateway/calls/results.h"

namespace hive::calls {
namespace {

using protocol::Outcome;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

constexpr std::string_view fine = R"({"content":[{"type":"text","text":"fine"}]})";
constexpr std::string_view failed = R"({"content":[{"type":"text","text":"broken"}],"isError":true})";

/// Remembers what it is handed.
class Collected final : public FanOutSink {
 public:
  struct Ended {
    std::string agent;
    CallResult call;
  };

  void result(FanOutResult result) override {
    EXPECT_FALSE(end_.has_value()) << "a result after the end";
    EXPECT_TRUE(by_agent_.emplace(result.agent, result.place).second) << "two results of " << result.agent;
    results_.push_back({std::string(result.agent), std::move(result.call)});
  }
  void end(const FanOutEnd& end) override {
    EXPECT_FALSE(end_.has_value()) << "it must end once";
    end_ = end;
  }
  [[nodiscard]] bool has_room() const override { return room_; }

  [[nodiscard]] const CallResult& of(std::string_view agent) const {
    auto found = std::ranges::find(results_, agent, &Ended::agent);
    static const CallResult none;
    EXPECT_NE(found, results_.end()) << "no result of " << agent;
    return found == results_.end() ? none : found->call;
  }
  [[nodiscard]] std::vector<std::string> order() const {
    std::vector<std::string> agents;
    for (const Ended& each : results_)
      agents.push_back(each.agent);
    return agents;
  }

  std::vector<Ended> results_;
  std::map<std::string, std::size_t> by_agent_;
  std::optional<FanOutEnd> end_;
  bool room_ = true;
};

class FanOutTest : public test::HiveFixture {
 protected:
  ~FanOutTest() override {
    // Calls that a test left running end while their fan-outs are still there.
    fleet_->close("end of test");
    settle();
  }

  using Channel = std::shared_ptr<net::ssh::FakeLineChannel>;

  /// An agent that answers every call at once.
  Channel connect_answering(const std::string& id, std::string_view result = fine) {
    Channel channel = connect(id);
    channel->on_send = [this, raw = std::string(result), weak = std::weak_ptr(channel)](const std::string& line) {
      if (!is_call(line)) return;
      worker().post([weak, line, raw] {
        if (auto alive = weak.lock()) alive->arrive(protocol::encode_result(id_of(line), raw));
      });
    };
    return channel;
  }

  static bool is_call(const std::string& line) {
    return line.contains(R"("tools/call")") && !line.contains("get_system_info");
  }
  static std::string id_of(const std::string& line) {
    auto members = json::parse_object(line);
    return std::string(*json::find(*members, "id"));
  }
  /// Answers the one call that an agent has.
  void answer_call(net::ssh::FakeLineChannel& channel, std::string_view result = fine) {
    auto call = std::ranges::find_if(channel.sent(), is_call);
    ASSERT_NE(call, channel.sent().end());
    channel.arrive(protocol::encode_result(id_of(*call), result));
    settle();
  }

  static FanOutRequest request_for(std::vector<std::string> agents) {
    FanOutRequest request;
    request.principal = person("alice");
    request.request_id = "r-1";
    request.tool = "get_metrics";
    request.targets.agents = std::move(agents);
    return request;
  }
  static FanOutRequest request_for_all() {
    FanOutRequest request = request_for({});
    request.targets.all = true;
    return request;
  }

  std::shared_ptr<RunningFanOut> start(FanOutRequest request) {
    sink_ = std::make_shared<Collected>();
    auto started = fan_outs().start(worker(), std::move(request), sink_);
    EXPECT_TRUE(started.has_value()) << started.error().body;
    settle();
    return started.value_or(nullptr);
  }
  CallResult refused(FanOutRequest request) {
    sink_ = std::make_shared<Collected>();
    auto started = fan_outs().start(worker(), std::move(request), sink_);
    settle();
    EXPECT_FALSE(started.has_value());
    EXPECT_THAT(sink_->results_, IsEmpty());
    return started.has_value() ? CallResult() : started.error();
  }
  /// Runs what is ready until something is true, over real time.
  template <class Condition>
  bool eventually(Condition condition) {
    auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (!condition()) {
      if (std::chrono::steady_clock::now() > end) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      settle();
    }
    return true;
  }

  FanOuts& fan_outs() {
    if (fan_outs_ == nullptr) fan_outs_ = FanOuts::create(*funnel_, *fleet_, &log_, clock_, fan_out_options_);
    return *fan_outs_;
  }

  std::vector<audit::Record> records_of(std::string_view action) const {
    std::vector<audit::Record> found;
    for (const audit::Record& record : log_.records())
      if (record.action == action) found.push_back(record);
    return found;
  }

  FanOuts::Options fan_out_options_;
  std::unique_ptr<FanOuts> fan_outs_;
  std::shared_ptr<Collected> sink_;
};

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

TEST_F(FanOutTest, NoMoreCallsRunAtOnceThanWereAskedFor) {
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

TEST_F(FanOutTest, StopsAfterSoManyErrorsAndAccountsForTheRest) {
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

TEST_F(FanOutTest, WhatRunsWhenItStopsIsWaitedFor) {
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

TEST_F(FanOutTest, AtTheDeadlineWhatRunsIsWithdrawnAndTheRestHasExpired) {
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

TEST_F(FanOutTest, ACallerWhoWithdrawsEndsWhatRunsAndStartsNoMore) {
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

TEST_F(FanOutTest, AWithdrawalWithoutAReasonEndsWhatRunsAsWell) {
  Channel channel = connect("edge-1");
  start(request_for_all())->cancel("");
  settle();
  EXPECT_THAT(channel->sent(), Contains(HasSubstr("cancelled")));
}

TEST_F(FanOutTest, ACredentialThatIsTakenAwayStartsNoMoreCalls) {
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

TEST_F(FanOutTest, ACredentialThatExpiresStartsNoMoreCalls) {
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

TEST_F(FanOutTest, AScopeThatShrinksHoldsForTheCallsThatAreLeft) {
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

TEST_F(FanOutTest, AReaderWithoutRoomHoldsBackNewCalls) {
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

TEST_F(FanOutTest, NobodyIsAskedToApproveHundredsOfCallsAtOnce) {
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

TEST_F(FanOutTest, RequestsOfOneIdentityAreBoundedAndOthersAreNotHeldUp) {
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

TEST_F(FanOutTest, WhatIsOutOfBoundsIsRefused) {
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

TEST_F(FanOutTest, WhenTheGatewayStopsTheRestIsNotTriedOneByOne) {
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
}  // namespace hive::calls
