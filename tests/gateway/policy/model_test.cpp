#include "gateway/policy/model.h"

#include <cstdlib>

#include <gtest/gtest.h>

#include "base/strings.h"
#include "gateway/policy/authenticator.h"
#include "gateway/policy/credentials.h"

namespace hive::policy {
namespace {

using model::Call;
using model::Random;
using model::World;

// HIVE_SEED=N repeats the world of one failure.
std::vector<std::uint64_t> seeds(std::uint64_t count) {
  if (const char* chosen = std::getenv("HIVE_SEED")) {
    return {static_cast<std::uint64_t>(parse_int64(chosen).value_or(0))};
  }
  std::vector<std::uint64_t> all;
  for (std::uint64_t seed = 1; seed <= count; ++seed)
    all.push_back(seed);
  return all;
}

std::string reason_of(const Decision& decision) {
  EXPECT_EQ(decision.allowed(), decision.reason.empty());
  return decision.reason;
}

class PolicyModel : public testing::Test {
 protected:
  void enter(const World& world) {
    config::GatewayConfig config = world.configuration();
    policy_ = make_policy(config, clock_);
    auto made = Authenticator::create(config, clock_);
    ASSERT_TRUE(made) << made.error().message;
    authenticator_ = *made;
    history_.clear();
  }

  // As the funnel does it: the first gate that refuses ends the call, and only what passes the gates before is counted.
  void make_call(const World& world, const Call& call) {
    bool expired = call.token != nullptr && call.token->expires_at && *call.token->expires_at <= clock_.wall_now();
    auto principal = authenticator_->authenticate(with_header(call.header));
    ASSERT_EQ(principal.has_value(), call.token != nullptr && !expired) << call.header;
    if (!principal) {
      if (expired) {
        EXPECT_EQ(principal.error(), CredentialFault::expired);
      }
      return;
    }
    EXPECT_EQ(to_string(principal->role), call.token->role);
    EXPECT_EQ(principal->grant->identity, call.token->identity);

    protocol::Tier tier = policy_->tier_of(call.tool, call.arguments.json);
    ASSERT_EQ(protocol::to_string(tier), model::tier_of(world, call));
    EXPECT_EQ(policy_->explain_tier(call.tool, call.arguments.json).tier, tier);

    Question question{*principal, call.agent, call.tool, call.arguments.json, tier};
    std::vector<GateAnswer> explained = policy_->explain(question);
    ASSERT_EQ(explained.size(), 4u);
    for (const GateAnswer& answer : explained)
      EXPECT_FALSE(answer.decision.rule.empty()) << answer.gate;

    bool role = model::refused_by_role(*call.token);
    bool scope = model::refused_by_scope(world, *call.token, call);
    bool approval = model::waits(world, std::string(protocol::to_string(tier)));
    bool rate = model::refused_by_rate(world, history_, call, clock_.steady_now());
    const std::pair<bool, std::string> expected[] = {
        {role, "role"}, {scope, "scope"}, {approval, "approval_required"}, {rate, "rate_limited"}};
    for (std::size_t i = 0; i < 4; ++i)
      EXPECT_EQ(reason_of(explained[i].decision), expected[i].first ? expected[i].second : "") << explained[i].gate;

    using Gate = Decision (Policy::*)(const Question&) const;
    const Gate gates[] = {&Policy::check_role, &Policy::check_scope, &Policy::check_approval, &Policy::check_rate};
    for (std::size_t i = 0; i < 4; ++i) {
      Decision decision = (*policy_.*gates[i])(question);
      ++decisions_;
      ASSERT_EQ(reason_of(decision), expected[i].first ? expected[i].second : "");
      EXPECT_EQ(decision.verdict, explained[i].decision.verdict);
      if (!decision.allowed()) {
        EXPECT_EQ(decision.rule, explained[i].decision.rule);
        EXPECT_EQ(decision.message, explained[i].decision.message);
        return;
      }
    }
    ++passed_;
    history_[{call.token->text, call.agent, call.tool}].push_back(clock_.steady_now());
  }

  void ask_approver(const World& world, const Call& call, const model::Token& approver) {
    if (call.token == nullptr) return;
    auto by = authenticator_->authenticate(with_header("Bearer " + approver.text));
    auto requester = authenticator_->authenticate(with_header("Bearer " + call.token->text));
    if (!by || !requester) return;
    ApprovalSubject subject;
    subject.principal = requester->name;
    subject.identity = requester->identity();
    subject.agent = call.agent;
    subject.tool = call.tool;
    subject.arguments = call.arguments.json;
    subject.tier = policy_->tier_of(call.tool, call.arguments.json);
    EXPECT_EQ(reason_of(policy_->check_approver(*by, subject)),
              model::refusal_of_approver(world, approver, *call.token, call));
  }

  ManualClock clock_;
  std::shared_ptr<const Policy> policy_;
  std::shared_ptr<const Authenticator> authenticator_;
  model::History history_;
  std::size_t decisions_ = 0;
  std::size_t passed_ = 0;
};

TEST_F(PolicyModel, AgreesWithThePolicyInEveryWorld) {
  const auto all = seeds(400);
  for (std::uint64_t seed : all) {
    Random random(seed);
    World world = model::random_world(random, clock_.wall_now());
    ASSERT_NO_FATAL_FAILURE(enter(world)) << "HIVE_SEED=" << seed;
    for (int i = 0; i < 40; ++i) {
      Call call = model::random_call(random, world);
      SCOPED_TRACE(fmt::format("HIVE_SEED={}, call {}: {} {}__{} {}", seed, i, call.header, call.agent, call.tool,
                               call.arguments.json));
      make_call(world, call);
      ask_approver(world, call, random.of(world.tokens));
      if (random.one_in(4)) clock_.advance(std::chrono::seconds(1 + random.below(40)));
      if (HasFailure()) return;
    }
  }
  // A world in which nothing ever passes, or everything, would prove nothing.
  if (all.size() > 1) {
    EXPECT_GT(passed_, 1000u);
    EXPECT_GT(decisions_, 4 * passed_ + 1000);
  }
}

}  // namespace
}  // namespace hive::policy
