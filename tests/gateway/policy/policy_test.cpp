#include "gateway/policy/policy.h"

#include <gtest/gtest.h>

namespace hive::policy {
namespace {

using namespace std::chrono_literals;
using protocol::Tier;

Principal with_role(Role role) {
  auto grant = std::make_shared<Grant>();
  grant->rule = "gateway.json:5: tokens[0] = " + std::string(to_string(role));
  return {"token:0123456789ab", role, grant};
}

Principal with_scope(Scope scope, Role role = Role::operator_) {
  auto grant = std::make_shared<Grant>();
  grant->kind = CredentialKind::scoped_token;
  grant->scope = std::move(scope);
  return {"token:1123456789ab", role, grant};
}

Principal person(std::string identity, Role role = Role::admin, std::vector<std::string> groups = {}) {
  auto grant = std::make_shared<Grant>();
  grant->identity = identity;
  grant->groups = std::move(groups);
  return {"token:of-" + identity, role, grant};
}

class PolicyTest : public testing::Test {
 protected:
  PolicyTest() {
    config_.source_path = "gateway.json";
    config_.lines = {{"scoped_tokens[0].agents", 14},  {"scoped_tokens[0].tags", 15},
                     {"scoped_tokens[0].tools", 16},   {"require_approval_tiers", 20},
                     {"risk_tiers.run_command", 22},   {"risk_tiers.run_command:chaos.sh", 23},
                     {"approvals_required.admin", 25}, {"rate_limit_per_minute", 30}};
    config_.agent_tags = {{"edge-1", {"lab"}}, {"edge-2", {"prod"}}};
  }

  [[nodiscard]] std::shared_ptr<const Policy> make() const { return make_policy(config_, clock_); }

  Decision scope(const Principal& principal, std::string_view agent, std::string_view tool = "get_metrics",
                 std::string_view arguments = "{}") {
    return make()->check_scope({principal, agent, tool, arguments, Tier::read});
  }

  config::GatewayConfig config_;
  ManualClock clock_;
  const Principal operator_ = with_role(Role::operator_);
};

TEST_F(PolicyTest, TheFirstGateLetsOperatorsAndAdminsCallTools) {
  auto policy = make();
  for (Role role : {Role::operator_, Role::admin}) {
    Principal principal = with_role(role);
    EXPECT_TRUE(policy->check_role({principal, "edge-1", "get_metrics", "{}", Tier::read}).allowed());
  }
  Principal reader = with_role(Role::read_only);
  Decision refused = policy->check_role({reader, "edge-1", "get_metrics", "{}", Tier::read});
  EXPECT_EQ(refused.verdict, Verdict::deny);
  EXPECT_EQ(refused.reason, "role");
  EXPECT_EQ(refused.rule, "gateway.json:5: tokens[0] = read-only");
}

TEST_F(PolicyTest, ACredentialWithoutScopeReachesTheWholeFleet) {
  EXPECT_TRUE(scope(operator_, "edge-9", "run_command", R"({"all_agents":true})").allowed());
  EXPECT_TRUE(make()->reaches(operator_, "edge-9"));
  EXPECT_TRUE(make()->reaches(operator_, "edge-9", "run_command"));
}

TEST_F(PolicyTest, AScopeIsAgentsOrTagsAndTools) {
  Principal limited = with_scope({{"gate-*"}, {"lab"}, {"get_*", "run_command"}, "scoped_tokens[0]"});
  EXPECT_TRUE(scope(limited, "gate-1").allowed());
  EXPECT_TRUE(scope(limited, "edge-1", "run_command").allowed());
  Decision agent = scope(limited, "edge-2");
  EXPECT_EQ(agent.reason, "scope");
  EXPECT_EQ(agent.rule,
            "gateway.json:14: scoped_tokens[0].agents = gate-*; gateway.json:15: scoped_tokens[0].tags = lab");
  Decision tool = scope(limited, "edge-1", "read_logs");
  EXPECT_EQ(tool.reason, "scope");
  EXPECT_EQ(tool.rule, "gateway.json:16: scoped_tokens[0].tools = get_*, run_command");

  auto policy = make();
  EXPECT_TRUE(policy->reaches(limited, "edge-1"));
  EXPECT_FALSE(policy->reaches(limited, "edge-2"));
  EXPECT_TRUE(policy->reaches(limited, "edge-1", "get_metrics"));
  EXPECT_FALSE(policy->reaches(limited, "edge-1", "read_logs"));
  EXPECT_FALSE(policy->reaches(limited, "edge-2", "get_metrics"));
}

TEST_F(PolicyTest, AScopeThatSaysNothingReachesNothing) {
  EXPECT_FALSE(scope(with_scope({{}, {}, {"*"}, ""}), "edge-1").allowed());
  EXPECT_FALSE(scope(with_scope({{"*"}, {}, {}, ""}), "edge-1").allowed());
  EXPECT_FALSE(scope(with_scope({{"*"}, {}, {"*"}, ""}), "").allowed());
}

TEST_F(PolicyTest, EveryAgentThatTheArgumentsNameMustBeInScope) {
  Principal limited = with_scope({{"edge-1", "edge-3"}, {}, {"*"}, "scoped_tokens[0]"});
  for (const char* arguments : {R"({"agent_id":"edge-3"})", R"({"agent_ids":["edge-1","edge-3"]})",
                                R"({"agents":[],"all_agents":false})", R"({"prompt":"edge-2"})"})
    EXPECT_TRUE(scope(limited, "edge-1", "ask", arguments).allowed()) << arguments;
  for (const char* arguments :
       {R"({"agent_id":"edge-2"})", R"({"agent":"edge-2"})", R"({"agent_ids":["edge-1","edge-2"]})",
        R"({"agents":["edge-2"]})", R"({"all_agents":true})", R"({"\u0061gents":["edge-2"]})", R"({"agents":[1]})",
        R"({"agent_id":""})", R"({"agent_id":"edge-3","agent_id":"edge-2"})"}) {
    Decision refused = scope(limited, "edge-1", "ask", arguments);
    EXPECT_EQ(refused.reason, "scope") << arguments;
    EXPECT_FALSE(refused.message.empty());
    EXPECT_FALSE(refused.rule.empty());
  }
  Principal everywhere = with_scope({{"*"}, {}, {"ask"}, "scoped_tokens[0]"});
  EXPECT_TRUE(scope(everywhere, "edge-1", "ask", R"({"all_agents":true})").allowed());
}

TEST_F(PolicyTest, ARefusalSaysNothingOfAgentsThatTheCallerDidNotName) {
  Principal limited = with_scope({{"gate-*"}, {"lab"}, {"*"}, "scoped_tokens[0]"});
  // The same words whether the agent exists or not.
  std::string existing = scope(limited, "edge-2").message;
  std::string invented = scope(limited, "edge-8").message;
  EXPECT_EQ(existing.replace(existing.find("edge-2"), 6, "edge-8"), invented);
  EXPECT_EQ(invented.find("gate"), std::string::npos);
  EXPECT_EQ(scope(limited, "a\n\x1b[2J").message.find('\n'), std::string::npos);
  EXPECT_LT(scope(limited, std::string(5000, 'x')).message.size(), 300u);
}

TEST_F(PolicyTest, TiersOnTheListWaitForOtherPeople) {
  config_.require_approval_tiers = {"write", "admin"};
  config_.approvals_required = {{"admin", {2, {"ops", "security"}}}};
  auto policy = make();
  EXPECT_TRUE(policy->check_approval({operator_, "edge-1", "get_metrics", "{}", Tier::read}).allowed());
  Decision asked = policy->check_approval({operator_, "edge-1", "run_command", "{}", Tier::write});
  EXPECT_EQ(asked.verdict, Verdict::ask);
  EXPECT_EQ(asked.reason, "approval_required");
  EXPECT_EQ(asked.message, "\"run_command\" is of tier write here and needs the approval of another admin");
  EXPECT_EQ(asked.rule, "gateway.json:20: require_approval_tiers = write, admin");
  asked = policy->check_approval({operator_, "edge-1", "run_command", "{}", Tier::admin});
  EXPECT_NE(asked.message.find("2 other admins of one of the groups ops, security"), std::string::npos);
  EXPECT_EQ(policy->approvals_needed(Tier::write), 1u);
  EXPECT_EQ(policy->approvals_needed(Tier::admin), 2u);
}

TEST_F(PolicyTest, ATierThatNobodyKnowsOpensNothing) {
  config_.require_approval_tiers = {"destructive"};
  config_.risk_tiers = {{"get_metrics", "harmless"}};
  auto policy = make();
  EXPECT_EQ(policy->tier_of("get_metrics", "{}"), Tier::admin);
  for (Tier tier : {Tier::read, Tier::write, Tier::admin})
    EXPECT_EQ(policy->check_approval({operator_, "edge-1", "x", "{}", tier}).verdict, Verdict::ask);
}

TEST_F(PolicyTest, CallsOfOnePrincipalAgentAndToolAreCounted) {
  config_.rate_limit_per_minute = 2;
  auto policy = make();
  auto call = [&](const Principal& principal, std::string_view agent, std::string_view tool) {
    return policy->check_rate({principal, agent, tool, "{}", Tier::read});
  };
  EXPECT_TRUE(call(operator_, "edge-1", "get_metrics").allowed());
  clock_.advance(10s);
  EXPECT_TRUE(call(operator_, "edge-1", "get_metrics").allowed());
  Decision refused = call(operator_, "edge-1", "get_metrics");
  EXPECT_EQ(refused.reason, "rate_limited");
  EXPECT_EQ(refused.retry_after, 50s);
  EXPECT_EQ(refused.rule, "gateway.json:30: rate_limit_per_minute = 2");
  EXPECT_TRUE(call(operator_, "edge-2", "get_metrics").allowed());
  EXPECT_TRUE(call(operator_, "edge-1", "read_logs").allowed());
  EXPECT_TRUE(call(person("ann"), "edge-1", "get_metrics").allowed());
  clock_.advance(50s);
  EXPECT_TRUE(call(operator_, "edge-1", "get_metrics").allowed());
}

TEST_F(PolicyTest, AReloadForgetsNoCallsOfAnUnchangedLimit) {
  config_.rate_limit_per_minute = 1;
  auto before = make();
  EXPECT_TRUE(before->check_rate({operator_, "edge-1", "x", "{}", Tier::read}).allowed());
  auto after = make_policy(config_, clock_, before.get());
  EXPECT_FALSE(after->check_rate({operator_, "edge-1", "x", "{}", Tier::read}).allowed());
  config_.rate_limit_per_minute = 2;
  auto changed = make_policy(config_, clock_, after.get());
  EXPECT_TRUE(changed->check_rate({operator_, "edge-1", "x", "{}", Tier::read}).allowed());
}

TEST_F(PolicyTest, ExplainsEveryGateWithItsLine) {
  config_.require_approval_tiers = {"admin"};
  auto policy = make();
  auto answers = policy->explain({operator_, "edge-1", "run_command", "{}", Tier::write});
  ASSERT_EQ(answers.size(), 4u);
  const char* expected[][2] = {{"role", "gateway.json:5: tokens[0] = operator"},
                               {"scope", "built-in: a credential without a scope reaches the whole fleet"},
                               {"approval", "gateway.json:20: require_approval_tiers = admin"},
                               {"rate_limit", "gateway.json:30: rate_limit_per_minute"}};
  for (std::size_t i = 0; i < answers.size(); ++i) {
    EXPECT_EQ(answers[i].gate, expected[i][0]);
    EXPECT_TRUE(answers[i].decision.allowed());
    EXPECT_TRUE(answers[i].decision.rule.starts_with(expected[i][1])) << answers[i].decision.rule;
  }
}

TEST_F(PolicyTest, ExplainsDefaultsAsNotSet) {
  config_.lines.clear();
  auto answers = make()->explain({operator_, "edge-1", "run_command", "{}", Tier::write});
  EXPECT_EQ(answers[2].decision.rule, "gateway.json: require_approval_tiers is not set");
  EXPECT_EQ(answers[3].decision.rule, "gateway.json: rate_limit_per_minute is not set");
}

TEST_F(PolicyTest, ExplainsWhichEntryOfAScopeLetsACallThrough) {
  Principal limited = with_scope({{"gate-*"}, {"lab"}, {"get_*"}, "scoped_tokens[0]"});
  auto rule = [&](std::string_view agent) {
    return make()->explain({limited, agent, "get_metrics", "{}", Tier::read})[1].decision.rule;
  };
  EXPECT_EQ(rule("gate-1"), "gateway.json:14: scoped_tokens[0].agents = gate-*");
  EXPECT_EQ(rule("edge-1"), "gateway.json:15: scoped_tokens[0].tags = lab");
}

TEST_F(PolicyTest, ExplainingStopsAtNoRefusalAndCountsNothing) {
  config_.require_approval_tiers = {"write"};
  config_.rate_limit_per_minute = 1;
  auto policy = make();
  Principal nobody = with_scope({{"edge-2"}, {}, {"*"}, "scoped_tokens[0]"}, Role::read_only);
  Question question{nobody, "edge-1", "run_command", "{}", Tier::write};
  for (int i = 0; i < 3; ++i) {
    auto answers = policy->explain(question);
    EXPECT_EQ(answers[0].decision.reason, "role");
    EXPECT_EQ(answers[1].decision.reason, "scope");
    EXPECT_EQ(answers[2].decision.reason, "approval_required");
    EXPECT_TRUE(answers[3].decision.allowed());
  }
  EXPECT_TRUE(policy->check_rate(question).allowed());
  EXPECT_EQ(policy->explain(question)[3].decision.reason, "rate_limited");
}

TEST_F(PolicyTest, AnAllowedDecisionSaysNothing) {
  Decision decision = make()->check_role({operator_, "edge-1", "get_metrics", "{}", Tier::read});
  EXPECT_TRUE(decision.reason.empty() && decision.message.empty() && decision.rule.empty());
}

TEST_F(PolicyTest, VerdictsHaveNames) {
  EXPECT_EQ(to_string(Verdict::allow), "allow");
  EXPECT_EQ(to_string(Verdict::deny), "deny");
  EXPECT_EQ(to_string(Verdict::ask), "ask");
  EXPECT_EQ(to_string(Verdict::unknown), "unknown");
}

// Who may approve.

class ApproverTest : public PolicyTest {
 protected:
  ApproverTest() {
    config_.require_approval_tiers = {"write", "admin"};
    config_.approvals_required = {{"admin", {2, {"ops"}}}};
    config_.approval_groups = {{"ops", {"carol"}}};
  }

  std::string reason(const Principal& approver, const ApprovalSubject& subject) {
    Decision decision = make()->check_approver(approver, subject);
    EXPECT_EQ(decision.allowed(), decision.reason.empty());
    EXPECT_EQ(decision.allowed(), decision.message.empty());
    EXPECT_EQ(decision.allowed(), decision.rule.empty());
    return decision.reason;
  }

  static ApprovalSubject asked_by(std::string identity, Tier tier = Tier::write) {
    ApprovalSubject subject;
    subject.principal = "token:of-" + identity;
    subject.identity = std::move(identity);
    subject.agent = "edge-1";
    subject.tool = "run_command";
    subject.arguments = R"({"name":"uptime"})";
    subject.tier = tier;
    return subject;
  }
};

TEST_F(ApproverTest, IsAnAdmin) {
  EXPECT_EQ(reason(person("bob"), asked_by("ann")), "");
  EXPECT_EQ(reason(person("bob", Role::operator_), asked_by("ann")), "role");
  EXPECT_EQ(reason(person("bob", Role::read_only), asked_by("ann")), "role");
}

TEST_F(ApproverTest, IsSomebodyElseWhicheverCredentialIsShown) {
  EXPECT_EQ(reason(person("ann"), asked_by("ann")), "own_request");
  EXPECT_EQ(reason(person("Ann"), asked_by("ann")), "own_request");
  EXPECT_EQ(reason(Principal{"ann", Role::admin, {}}, asked_by("ann")), "own_request");
  EXPECT_EQ(reason(Principal{"token:of-ann", Role::admin, {}}, asked_by("ann")), "own_request");
  ApprovalSubject through_the_assistant = asked_by("assistant");
  through_the_assistant.on_behalf_of = "ann";
  EXPECT_EQ(reason(person("ann"), through_the_assistant), "own_request");
  EXPECT_EQ(reason(person("bob"), through_the_assistant), "");
}

TEST_F(ApproverTest, HasAgentToolAndNamedAgentsInScope) {
  auto scoped = [](std::vector<std::string> agents, std::vector<std::string> tools) {
    return with_scope({std::move(agents), {}, std::move(tools), "scoped_tokens[0]"}, Role::admin);
  };
  EXPECT_EQ(reason(scoped({"edge-1"}, {"*"}), asked_by("ann")), "");
  EXPECT_EQ(reason(scoped({"edge-2"}, {"*"}), asked_by("ann")), "scope");
  EXPECT_EQ(reason(scoped({"edge-1"}, {"read_logs"}), asked_by("ann")), "scope");
  ApprovalSubject wider = asked_by("ann");
  wider.arguments = R"({"agent_ids":["edge-2"]})";
  EXPECT_EQ(reason(scoped({"edge-1"}, {"*"}), wider), "scope");
}

TEST_F(ApproverTest, IsOfANamedGroupWhereTheRuleNamesSome) {
  EXPECT_EQ(reason(person("carol"), asked_by("ann", Tier::admin)), "");
  EXPECT_EQ(reason(person("dave", Role::admin, {"staff", "ops"}), asked_by("ann", Tier::admin)), "");
  EXPECT_EQ(reason(person("dave", Role::admin, {"staff"}), asked_by("ann", Tier::admin)), "group");
  EXPECT_EQ(reason(person("Carol"), asked_by("ann", Tier::admin)), "group");
  Decision refused = make()->check_approver(person("dave"), asked_by("ann", Tier::admin));
  EXPECT_EQ(refused.rule, "gateway.json:25: approvals_required.admin = 2 of ops");
}

}  // namespace
}  // namespace hive::policy
