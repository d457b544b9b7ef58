#include "gateway/calls/dry_run.h"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gateway/calls/hive_fixture.h"

namespace hive::calls {
namespace {

using policy::Verdict;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ExplainTest : public test::HiveFixture {
 protected:
  ExplainTest() {
    channel_ =
        connect_with_tools("edge-1", R"([{"name":"run_command"},{"name":"get_metrics"},{"name":"service_control"}])");
  }

  std::shared_ptr<net::ssh::FakeLineChannel> connect_with_tools(const std::string& agent, std::string_view tools) {
    auto channel = connect(agent);
    // What the gateway asks a new agent by itself is answered in the order in which it asks.
    for (std::size_t i = 0; i < channel->sent().size(); ++i) {
      auto members = json::parse_object(channel->sent()[i]);
      std::string method = json::decode_string(*json::find(*members, "method")).value_or("");
      std::string result = method == "tools/list" ? fmt::format(R"({{"tools":{}}})", tools) : "{}";
      channel->arrive(protocol::encode_result(*json::find(*members, "id"), result));
      poll();
    }
    return channel;
  }

  std::optional<Explanation> explain(Call call) {
    auto answer = std::make_shared<std::optional<Explanation>>();
    funnel_->explain(worker(), std::move(call),
                     [answer](Explanation explanation) { *answer = std::move(explanation); });
    settle();
    explanation_ = answer;
    return *answer;
  }

  static Verdict verdict_of(const Explanation& explanation, std::string_view gate) {
    for (const policy::GateAnswer& answer : explanation.gates) {
      if (answer.gate == gate) return answer.decision.verdict;
    }
    ADD_FAILURE() << "no answer of gate " << gate;
    return Verdict::unknown;
  }

  std::shared_ptr<net::ssh::FakeLineChannel> channel_;
  std::shared_ptr<std::optional<Explanation>> explanation_;
  const policy::Principal alice_ = person("alice");
};

TEST_F(ExplainTest, DryRunsAreLimitedAsCallsAreAndTakeNoneAway) {
  auto config = config_;
  config.rate_limit_per_minute = 2;
  reload(config);
  std::size_t before = channel_->sent().size();
  for (int i = 0; i < 2; ++i) {
    EXPECT_FALSE(explain(call_of(alice_, "edge-1", "run_command", R"({"name":"uptime"})")).has_value());
    answer(*channel_, R"({"content":[]})");
  }
  auto third = explain(call_of(alice_, "edge-1", "run_command", R"({"name":"uptime"})"));
  ASSERT_TRUE(third.has_value());
  EXPECT_EQ(verdict_of(*third, "allowlist"), Verdict::unknown);
  EXPECT_EQ(verdict_of(*third, "rate_limit"), Verdict::allow);
  EXPECT_EQ(third->reason, "rate_limited");
  EXPECT_EQ(channel_->sent().size(), before + 2);
}

TEST_F(ExplainTest, AsksTheAgentByADryRunAndRunsNothing) {
  std::size_t before = channel_->sent().size();
  EXPECT_FALSE(explain(call_of(alice_, "edge-1", "run_command", R"({"dry_run":false,"name":"uptime"})")).has_value());
  ASSERT_EQ(channel_->sent().size(), before + 1);
  EXPECT_THAT(channel_->sent().back(), HasSubstr(R"("arguments":{"name":"uptime","dry_run":true})"));
  answer(*channel_, R"({"content":[{"type":"text","text":"would run"}],"_meta":{"myrmex-hive/outcome":"success"}})");
  ASSERT_TRUE(explanation_->has_value());
  EXPECT_EQ((*explanation_)->verdict, Verdict::allow);
  EXPECT_EQ(verdict_of(**explanation_, "allowlist"), Verdict::allow);
  EXPECT_THAT(actions(), ElementsAre("explain"));
}

TEST_F(ExplainTest, TellsWhatTheAgentRefuses) {
  explain(call_of(alice_, "edge-1", "run_command", R"({"name":"rm"})"));
  answer(*channel_, R"({"content":[{"type":"text","text":"Command failed/rejected: no\nOutput:\n"}],"isError":true,)"
                    R"("_meta":{"myrmex-hive/outcome":"denied","myrmex-hive/reason":"not_allowlisted"}})");
  ASSERT_TRUE(explanation_->has_value());
  EXPECT_EQ((*explanation_)->verdict, Verdict::deny);
  EXPECT_EQ((*explanation_)->reason, "not_allowlisted");
  auto allowlist = std::ranges::find((*explanation_)->gates, "allowlist", &policy::GateAnswer::gate);
  ASSERT_NE(allowlist, (*explanation_)->gates.end());
  EXPECT_EQ(allowlist->decision.message, "no");
}

TEST_F(ExplainTest, WhoMayNotCallTheAgentDoesNotReachIt) {
  std::size_t before = channel_->sent().size();
  auto answer = explain(call_of(person("bob", policy::Role::read_only)));
  ASSERT_TRUE(answer.has_value());
  EXPECT_EQ(answer->verdict, Verdict::deny);
  EXPECT_EQ(answer->reason, "role");
  EXPECT_EQ(verdict_of(*answer, "allowlist"), Verdict::unknown);
  policy::Scope scope{{"edge-2"}, {}, {"*"}, "scoped_tokens[0]"};
  answer = explain(call_of(person("bob", policy::Role::admin, scope)));
  ASSERT_TRUE(answer.has_value());
  EXPECT_EQ(answer->reason, "scope");
  EXPECT_EQ(channel_->sent().size(), before);
}

TEST_F(ExplainTest, SaysThatOthersMustAgreeAndCreatesNoRequest) {
  config::GatewayConfig config = config_;
  config.require_approval_tiers = {"write"};
  reload(config);
  explain(call_of(alice_));
  answer(*channel_, R"({"content":[],"_meta":{"myrmex-hive/outcome":"success"}})");
  ASSERT_TRUE(explanation_->has_value());
  EXPECT_EQ((*explanation_)->verdict, Verdict::ask);
  EXPECT_EQ((*explanation_)->reason, "approval_required");
  EXPECT_TRUE(approvals_->list(alice_, false).empty());
}

TEST_F(ExplainTest, CountsNothing) {
  config::GatewayConfig config = config_;
  config.rate_limit_per_minute = 1;
  reload(config);
  for (int i = 0; i < 5; ++i) {
    auto answer = explain(call_of(alice_, "edge-1", "get_metrics", "{}"));
    ASSERT_TRUE(answer.has_value());
    EXPECT_EQ(answer->verdict, Verdict::allow);
  }
  run(call_of(alice_, "edge-1", "get_metrics", "{}"));
  EXPECT_EQ(explain(call_of(alice_, "edge-1", "get_metrics", "{}"))->reason, "rate_limited");
}

TEST_F(ExplainTest, AToolThatTheAgentDoesNotListIsRefused) {
  auto answer = explain(call_of(alice_, "edge-1", "format_disk", "{}"));
  ASSERT_TRUE(answer.has_value());
  EXPECT_EQ(answer->reason, "unknown_tool");
}

TEST_F(ExplainTest, AToolWithoutADryRunStaysUnknown) {
  auto answer = explain(call_of(alice_, "edge-1", "service_control", R"({"action":"restart","service":"nginx"})"));
  ASSERT_TRUE(answer.has_value());
  EXPECT_EQ(answer->verdict, Verdict::unknown);
  EXPECT_EQ(answer->reason, "no_dry_run");
}

TEST_F(ExplainTest, AnAgentThatIsOfflineIsNamed) {
  auto answer = explain(call_of(alice_, "edge-9", "get_metrics", "{}"));
  ASSERT_TRUE(answer.has_value());
  EXPECT_EQ(answer->verdict, Verdict::deny);
  EXPECT_EQ(answer->reason, "agent_unknown");
}

TEST_F(ExplainTest, AServerBehindTheGatewayThatIsNotThereIsNamed) {
  Call call = call_of(alice_, "github", "get_metrics", "{}");
  call.target = TargetKind::upstream;
  auto answer = explain(std::move(call));
  ASSERT_TRUE(answer.has_value());
  EXPECT_EQ(answer->reason, "upstream_unknown");
  EXPECT_EQ(answer->tier, protocol::Tier::write) << "the name of a built-in tool says nothing about a foreign one";
  EXPECT_THAT(answer->tier_rule, HasSubstr("server behind the gateway"));
}

}  // namespace
}  // namespace hive::calls
