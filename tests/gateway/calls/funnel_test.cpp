#include "gateway/calls/funnel.h"

#include <algorithm>
#include <optional>
#include <thread>

#include <boost/asio/io_context.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gateway/audit/fake_log.h"
#include "net/ssh/fake_line_channel.h"
#include "protocol/agent_protocol.h"

namespace hive::calls {
namespace {

using audit::FakeLog;
using audit::RecordKind;
using net::ssh::FakeLineChannel;
using protocol::Outcome;

class FunnelTest : public ::testing::Test {
 protected:
  FunnelTest() { make_funnel({}); }
  ~FunnelTest() override {
    fleet_->close("end of test");
    settle();
  }

  void make_funnel(const config::GatewayConfig& config) {
    funnel_ = Funnel::create(*fleet_, policy::make_policy(config, clock_), &log_, clock_, {});
  }

  // Runs what is ready on the worker; nothing here waits for time.
  void settle() {
    worker_.context().restart();
    worker_.context().poll();
  }

  std::shared_ptr<FakeLineChannel> connect(const std::string& agent) {
    auto channel = std::make_shared<FakeLineChannel>(worker_, agent);
    fleet_->add(channel);
    settle();
    return channel;
  }

  static Call make_call(std::string agent, std::string tool, policy::Role role = policy::Role::operator_) {
    Call call;
    call.principal = {"token:test", role};
    call.request_id = "request-1";
    call.agent = std::move(agent);
    call.tool = std::move(tool);
    return call;
  }

  std::shared_ptr<RunningCall> run(Call call) {
    result_.reset();
    auto running = funnel_->run(worker_, std::move(call), [this](CallResult result) {
      EXPECT_FALSE(result_.has_value()) << "a call must end once";
      result_ = std::move(result);
    });
    settle();
    return running;
  }

  // The id of the last line that a channel was sent.
  static std::string last_id(const FakeLineChannel& channel) {
    auto members = json::parse_object(channel.sent().back());
    return std::string(*json::find(*members, "id"));
  }

  void answer(FakeLineChannel& channel, std::string_view raw_result) {
    channel.arrive(protocol::encode_result(last_id(channel), raw_result));
    settle();
  }

  ManualClock clock_;
  net::Worker worker_;
  FakeLog log_;
  std::unique_ptr<fleet::Fleet> fleet_ = fleet::Fleet::create(clock_, {}, {});
  std::unique_ptr<Funnel> funnel_;
  std::optional<CallResult> result_;
};

TEST_F(FunnelTest, AReadCallReachesTheAgentAndLeavesOneOutcome) {
  auto channel = connect("edge-1");
  run(make_call("edge-1", "get_metrics"));
  EXPECT_FALSE(result_.has_value());
  answer(*channel, R"({"content":[{"type":"text","text":"{}"}]})");
  ASSERT_TRUE(result_.has_value());
  EXPECT_EQ(result_->outcome, Outcome::success);
  EXPECT_EQ(result_->body, R"({"content":[{"type":"text","text":"{}"}]})");
  ASSERT_EQ(log_.records().size(), 1U);
  EXPECT_EQ(log_.records()[0].kind, RecordKind::outcome);
  EXPECT_EQ(log_.records()[0].outcome, Outcome::success);
  EXPECT_EQ(log_.records()[0].principal, "token:test");
}

TEST_F(FunnelTest, AWriteCallLeavesTheGatewayOnlyAfterItsIntentIsDurable) {
  auto channel = connect("edge-1");
  size_t lines_before = channel->sent().size();
  log_.set_mode(FakeLog::Mode::held);
  run(make_call("edge-1", "run_command"));
  ASSERT_EQ(log_.records().size(), 1U);
  EXPECT_EQ(log_.records()[0].kind, RecordKind::intent);
  EXPECT_EQ(channel->sent().size(), lines_before);
  log_.release();
  settle();
  EXPECT_EQ(channel->sent().size(), lines_before + 1);
}

TEST_F(FunnelTest, TheCallerHearsOfTheOutcomeOnlyWhenItIsDurable) {
  auto channel = connect("edge-1");
  log_.set_mode(FakeLog::Mode::held);
  run(make_call("edge-1", "get_metrics"));
  answer(*channel, "{}");
  EXPECT_FALSE(result_.has_value());
  log_.release();
  settle();
  EXPECT_TRUE(result_.has_value());
}

TEST_F(FunnelTest, IntentAndOutcomeShareACallId) {
  auto channel = connect("edge-1");
  Call call = make_call("edge-1", "run_command");
  call.arguments = R"({"name":"uptime"})";
  run(std::move(call));
  answer(*channel,
         R"({"isError":true,"_meta":{"myrmex-hive/outcome":"denied","myrmex-hive/reason":"not_allowlisted"}})");
  ASSERT_EQ(log_.records().size(), 2U);
  EXPECT_EQ(log_.records()[0].call_id, log_.records()[1].call_id);
  EXPECT_EQ(log_.records()[0].arguments, R"({"name":"uptime"})");
  EXPECT_EQ(log_.records()[1].outcome, Outcome::denied);
  EXPECT_EQ(log_.records()[1].reason, "not_allowlisted");
}

TEST_F(FunnelTest, WhatCannotBeRecordedIsNotDone) {
  auto channel = connect("edge-1");
  size_t lines_before = channel->sent().size();
  for (FakeLog::Mode mode : {FakeLog::Mode::refusing, FakeLog::Mode::failing}) {
    log_.set_mode(mode);
    run(make_call("edge-1", "run_command"));
    ASSERT_TRUE(result_.has_value());
    EXPECT_EQ(result_->outcome, Outcome::denied);
    EXPECT_EQ(result_->reason, "audit_unavailable");
  }
  EXPECT_EQ(channel->sent().size(), lines_before);
}

TEST_F(FunnelTest, ReadCallsGoOnWhileTheLogCannotBeWritten) {
  auto channel = connect("edge-1");
  log_.set_mode(FakeLog::Mode::refusing);
  run(make_call("edge-1", "get_metrics"));
  answer(*channel, "{}");
  ASSERT_TRUE(result_.has_value());
  EXPECT_EQ(result_->outcome, Outcome::success);
}

TEST_F(FunnelTest, WithoutALogOnlyReadCallsRun) {
  auto channel = connect("edge-1");
  funnel_ = Funnel::create(*fleet_, policy::make_policy({}, clock_), nullptr, clock_, {});
  run(make_call("edge-1", "service_control"));
  EXPECT_EQ(result_->reason, "audit_unavailable");
  run(make_call("edge-1", "get_metrics"));
  answer(*channel, "{}");
  EXPECT_EQ(result_->outcome, Outcome::success);
}

TEST_F(FunnelTest, AToolThatNobodyClassifiedIsOfTierWrite) {
  connect("edge-1");
  run(make_call("edge-1", "unheard_of"));
  EXPECT_EQ(log_.records()[0].kind, RecordKind::intent);
  EXPECT_EQ(log_.records()[0].tier, "write");
}

TEST_F(FunnelTest, EachGateRefusesWithItsReasonAndAnAuditEntry) {
  auto channel = connect("edge-1");
  size_t lines_before = channel->sent().size();
  run(make_call("edge-1", "get_metrics", policy::Role::read_only));
  EXPECT_EQ(result_->reason, "role");

  config::GatewayConfig config;
  config.require_approval_tiers = {"write"};
  config.rate_limit_per_minute = 1;
  make_funnel(config);
  run(make_call("edge-1", "run_command"));
  EXPECT_EQ(result_->reason, "audit_unavailable") << "nobody is there to take the request";

  EXPECT_EQ(channel->sent().size(), lines_before);
  run(make_call("edge-1", "get_metrics"));
  answer(*channel, "{}");
  run(make_call("edge-1", "get_metrics"));
  EXPECT_EQ(result_->reason, "rate_limited");
  EXPECT_GT(result_->retry_after.count(), 0);

  std::vector<std::string> reasons;
  for (const audit::Record& record : log_.records())
    reasons.push_back(record.reason);
  EXPECT_THAT(reasons, ::testing::ElementsAre("role", "audit_unavailable", "", "rate_limited"));
}

TEST_F(FunnelTest, WhoMayDoNothingCannotFillTheLog) {
  auto refused = [&] {
    run(make_call("edge-1", "run_command", policy::Role::read_only));
    return result_ ? result_->reason : "";
  };
  for (int i = 0; i < 1000; ++i)
    ASSERT_EQ(refused(), "role");
  std::size_t written = log_.size();
  EXPECT_LT(written, 200U);
  clock_.advance(std::chrono::minutes(2));
  ASSERT_EQ(refused(), "role");
  auto records = log_.records();
  ASSERT_EQ(records.size(), written + 2);
  EXPECT_EQ(records[written].principal, "token:test");
  EXPECT_EQ(records[written].reason, "role");
  EXPECT_TRUE(records[written].detail.starts_with(fmt::format("{} more like this", 1000 - written)))
      << records[written].detail;
  EXPECT_EQ(records[written].arguments, "");
  EXPECT_EQ(records[written + 1].detail.find("more like this"), std::string::npos);
}

TEST_F(FunnelTest, AReloadDoesNotForgetWhatTheRateLimitHasCounted) {
  auto channel = connect("edge-1");
  config::GatewayConfig config;
  config.rate_limit_per_minute = 1;
  auto before = policy::make_policy(config, clock_);
  funnel_->set_policy(before);
  run(make_call("edge-1", "get_metrics"));
  answer(*channel, "{}");
  funnel_->set_policy(policy::make_policy(config, clock_, before.get()));
  run(make_call("edge-1", "get_metrics"));
  EXPECT_EQ(result_->reason, "rate_limited");
}

TEST_F(FunnelTest, OnlyTheGatewaysOwnRefusalsAreMarkedAsIts) {
  auto channel = connect("edge-1");
  run(make_call("edge-1", "get_metrics"));
  channel->arrive(
      R"({"id":)" + last_id(*channel) +
      R"(,"error":{"code":-32603,"message":"x","data":{"outcome":"denied","reason":"audit_unavailable"}}})");
  settle();
  ASSERT_TRUE(result_.has_value());
  EXPECT_EQ(result_->reason, "audit_unavailable");
  EXPECT_FALSE(result_->by_gateway);
  run(make_call("nobody", "get_metrics"));
  EXPECT_TRUE(result_->by_gateway);
}

TEST_F(FunnelTest, ACancellationNeverOvertakesItsCall) {
  auto channel = connect("edge-1");
  log_.set_mode(FakeLog::Mode::held);
  auto running = run(make_call("edge-1", "run_command"));
  log_.set_mode(FakeLog::Mode::at_once);
  // The request is in the tunnel's queue, as it is when the log's own thread hands it over, and the caller leaves now.
  worker_.post([&] { running->cancel("caller went away"); });
  std::thread log_thread([&] { log_.release(); });
  log_thread.join();
  settle();
  bool told = std::ranges::any_of(channel->sent(),
                                  [](const std::string& line) { return line.contains("notifications/cancelled"); });
  bool sent =
      std::ranges::any_of(channel->sent(), [](const std::string& line) { return line.contains("run_command"); });
  EXPECT_EQ(told, sent);
}

TEST_F(FunnelTest, RiskTiersOfTheConfigurationOverrideTheTable) {
  config::GatewayConfig config;
  config.risk_tiers = {{"get_metrics", "admin"}};
  make_funnel(config);
  connect("edge-1");
  run(make_call("edge-1", "get_metrics"));
  EXPECT_EQ(log_.records()[0].kind, RecordKind::intent);
  EXPECT_EQ(log_.records()[0].tier, "admin");
}

TEST_F(FunnelTest, TellsAnAgentThatIsGoneFromOneThatNeverWas) {
  auto channel = connect("edge-1");
  channel->break_down();
  settle();
  run(make_call("edge-1", "get_metrics"));
  EXPECT_EQ(result_->reason, "agent_offline");
  EXPECT_NE(result_->body.find("offline since"), std::string::npos);
  run(make_call("nobody", "get_metrics"));
  EXPECT_EQ(result_->reason, "agent_unknown");
  EXPECT_EQ(result_->outcome, Outcome::denied);
}

TEST_F(FunnelTest, ATunnelThatBreaksAfterSendingLeavesTheOutcomeUnknown) {
  auto channel = connect("edge-1");
  run(make_call("edge-1", "run_command"));
  channel->break_down();
  settle();
  ASSERT_TRUE(result_.has_value());
  EXPECT_EQ(result_->outcome, Outcome::unknown);
  EXPECT_EQ(result_->reason, "tunnel_lost");
  EXPECT_EQ(log_.records().back().outcome, Outcome::unknown);
}

TEST_F(FunnelTest, AFullTunnelRefusesWithoutRunning) {
  auto channel = connect("edge-1");
  channel->set_full(true);
  run(make_call("edge-1", "get_metrics"));
  EXPECT_EQ(result_->outcome, Outcome::denied);
  EXPECT_EQ(result_->reason, "agent_busy");
}

TEST_F(FunnelTest, CancellingTellsTheAgentAndEndsWithWhatItConfirms) {
  auto channel = connect("edge-1");
  auto running = run(make_call("edge-1", "run_command"));
  std::string id = last_id(*channel);
  running->cancel("caller went away");
  settle();
  EXPECT_NE(channel->sent().back().find("notifications/cancelled"), std::string::npos);
  EXPECT_FALSE(result_.has_value());
  channel->arrive(protocol::encode_result(id, R"({"isError":true,"_meta":{"myrmex-hive/outcome":"cancelled"}})"));
  settle();
  ASSERT_TRUE(result_.has_value());
  EXPECT_EQ(result_->outcome, Outcome::cancelled);
}

TEST_F(FunnelTest, ACallWithdrawnBeforeItsIntentIsDurableNeverLeaves) {
  auto channel = connect("edge-1");
  size_t lines_before = channel->sent().size();
  log_.set_mode(FakeLog::Mode::held);
  auto running = run(make_call("edge-1", "run_command"));
  running->cancel("caller went away");
  log_.set_mode(FakeLog::Mode::at_once);
  log_.release();
  settle();
  ASSERT_TRUE(result_.has_value());
  EXPECT_EQ(result_->outcome, Outcome::cancelled);
  EXPECT_EQ(channel->sent().size(), lines_before);
}

TEST_F(FunnelTest, ProgressReachesTheCallerThatAskedForIt) {
  auto channel = connect("edge-1");
  Call call = make_call("edge-1", "run_command");
  std::vector<std::string> seen;
  call.on_progress = [&](std::string_view params) { seen.emplace_back(params); };
  run(std::move(call));
  channel->arrive(protocol::encode_progress(last_id(*channel), 1, "half"));
  settle();
  ASSERT_EQ(seen.size(), 1U);
  EXPECT_NE(seen[0].find("half"), std::string::npos);
}

TEST_F(FunnelTest, AnswersToOtherPeoplesIdsAreDropped) {
  auto honest = connect("edge-1");
  auto hostile = connect("edge-2");
  run(make_call("edge-1", "get_metrics"));
  hostile->arrive(protocol::encode_result(last_id(*honest), R"({"content":"forged"})"));
  settle();
  EXPECT_FALSE(result_.has_value());
  answer(*honest, R"({"content":[]})");
  EXPECT_EQ(result_->body, R"({"content":[]})");
}

TEST_F(FunnelTest, ACallerHasSoManyCallsInFlightAndOthersHaveTheirOwn) {
  funnel_ = Funnel::create(*fleet_, policy::make_policy({}, clock_), &log_, clock_, {.max_calls_per_caller = 2});
  auto channel = connect("edge-1");
  auto ended = std::make_shared<std::vector<CallResult>>();
  auto start = [&](const std::string& caller) {
    Call call = make_call("edge-1", "get_metrics");
    call.principal.name = caller;
    funnel_->run(worker_, std::move(call), [ended](CallResult result) { ended->push_back(std::move(result)); });
    settle();
  };
  start("token:test");
  start("token:test");
  EXPECT_TRUE(ended->empty());
  start("token:test");
  ASSERT_EQ(ended->size(), 1U);
  EXPECT_EQ(ended->front().outcome, Outcome::denied);
  EXPECT_EQ(ended->front().reason, "too_many_calls");
  EXPECT_NE(ended->front().body.find("2 calls of token:test are in flight"), std::string::npos);
  EXPECT_EQ(log_.records().back().reason, "too_many_calls");
  start("token:other");
  EXPECT_EQ(ended->size(), 1U) << "it runs";

  // Places are free as soon as the calls have ended, whichever way.
  channel->break_down();
  settle();
  EXPECT_EQ(ended->size(), 4U);
  connect("edge-1");
  start("token:test");
  start("token:test");
  EXPECT_EQ(ended->size(), 4U) << "they run";
}

TEST_F(FunnelTest, ACallThatHadNotLeftWhenTheTunnelBrokeDidNotRun) {
  auto channel = connect("edge-1");
  auto sent = run(make_call("edge-1", "run_command"));
  // All that was queued has left, but for the last byte of this one: an agent runs whole lines only.
  auto unsent = std::optional<CallResult>();
  funnel_->run(worker_, make_call("edge-1", "run_command"), [&](CallResult result) { unsent = std::move(result); });
  settle();
  net::ssh::Traffic traffic;
  traffic.queued = 1;
  channel->set_traffic(traffic);
  channel->break_down();
  settle();
  ASSERT_TRUE(result_.has_value() && unsent.has_value());
  EXPECT_EQ(result_->outcome, Outcome::unknown);
  EXPECT_EQ(unsent->outcome, Outcome::denied);
  EXPECT_EQ(unsent->reason, "tunnel_lost");
  std::vector<std::optional<Outcome>> outcomes;
  for (const auto& record : log_.records())
    if (record.kind == RecordKind::outcome) outcomes.push_back(record.outcome);
  EXPECT_THAT(outcomes, testing::UnorderedElementsAre(Outcome::unknown, Outcome::denied));
}

TEST_F(FunnelTest, DrainingRefusesNewCallsAndWaitsForTheOldOnes) {
  auto channel = connect("edge-1");
  std::optional<CallResult> first;
  (void)funnel_->run(worker_, make_call("edge-1", "get_metrics"),
                     [&](CallResult result) { first = std::move(result); });
  settle();
  std::string id = last_id(*channel);
  bool drained = false;
  funnel_->drain([&] { drained = true; });
  run(make_call("edge-1", "get_metrics"));
  EXPECT_EQ(result_->reason, "draining");
  EXPECT_FALSE(drained);
  channel->arrive(protocol::encode_result(id, "{}"));
  settle();
  EXPECT_TRUE(first.has_value());
  EXPECT_TRUE(drained);
  EXPECT_EQ(funnel_->in_flight(), 0U);
}

TEST_F(FunnelTest, ArgumentsThatDoNotFitInALineAreRefused) {
  connect("edge-1");
  Call call = make_call("edge-1", "get_metrics");
  call.arguments = json::encode_string(std::string(protocol::default_max_line_bytes, 'x'));
  run(std::move(call));
  EXPECT_EQ(result_->reason, "arguments_too_large");
}

TEST(ToolNameTest, SplitsAtTheFirstSeparator) {
  EXPECT_EQ(split_tool_name("edge-1__get_metrics").agent, "edge-1");
  EXPECT_EQ(split_tool_name("edge-1__a__b").tool, "a__b");
  EXPECT_EQ(split_tool_name("plain").agent, "");
}

}  // namespace
}  // namespace hive::calls
