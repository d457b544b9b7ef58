#include "config/gateway_rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/gateway_fixture.h"

namespace hive::config {
namespace {

using test::problems_of;
using test::read_gateway;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

TEST(RiskTiers, AreKnownByTheirOwnAndTheirOldNamesAndNoOthers) {
  Result<GatewayConfig> config = read_gateway(
      R"("risk_tiers":{"a":"mutate","b":"destructive","c":"read"},"require_approval_tiers":["destructive","admin"])");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_THAT(config->risk_tiers, UnorderedElementsAre(Pair("a", "write"), Pair("b", "admin"), Pair("c", "read")));
  EXPECT_THAT(config->require_approval_tiers, ElementsAre("admin"));
  EXPECT_THAT(config->without_effect, IsEmpty());
  EXPECT_THAT(problems_of(R"("risk_tiers":{"a":"high"})"), HasSubstr("risk_tiers.a: \"high\" is not a tier"));
  EXPECT_THAT(problems_of(R"("require_approval_tiers":["Write"])"),
              HasSubstr("require_approval_tiers[0]: \"Write\" is not a tier"));
}

TEST(RiskTiers, CanBeThoseOfOneCommand) {
  Result<GatewayConfig> config =
      read_gateway(R"("risk_tiers":{"run_command:uptime":"read","run_command:/opt/chaos.sh":"admin"})");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_THAT(config->risk_tiers,
              UnorderedElementsAre(Pair("run_command:uptime", "read"), Pair("run_command:/opt/chaos.sh", "admin")));
  EXPECT_THAT(problems_of(R"("risk_tiers":{"run_command:./x.sh":"read"})"), HasSubstr("is a relative path"));
  EXPECT_THAT(problems_of(R"("risk_tiers":{"run_command:bin/x":"read"})"), HasSubstr("is a relative path"));
  EXPECT_THAT(problems_of(R"("risk_tiers":{"run_command:a b":"read"})"), HasSubstr("is not the name of a command"));
  EXPECT_THAT(problems_of(R"("risk_tiers":{"run_command:":"read"})"), HasSubstr("is not the name of a command"));
}

TEST(RiskTiers, AreNotSetForOneAgentsTool) {
  EXPECT_THAT(problems_of(R"("risk_tiers":{"agent-1__run_command":"admin"})"), HasSubstr("write \"run_command\""));
}

TEST(Approvals, AreCountedByTierAndGroup) {
  Result<GatewayConfig> config = read_gateway(R"("require_approval_tiers":["write","admin"],"approval_ttl_seconds":60,
      "approvals_required":{"mutate":2,"admin":{"count":3,"groups":["ops","leads","ops"]}},
      "approval_groups":{"ops":["alice","bob"],"leads":["carol"]})");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->approval_ttl, std::chrono::seconds(60));
  ASSERT_EQ(config->approvals_required.size(), 2U);
  EXPECT_EQ(config->approvals_required.at("write").count, 2U);
  EXPECT_THAT(config->approvals_required.at("write").groups, IsEmpty());
  EXPECT_EQ(config->approvals_required.at("admin").count, 3U);
  EXPECT_THAT(config->approvals_required.at("admin").groups, ElementsAre("ops", "leads"));
  EXPECT_THAT(config->approval_groups.at("ops"), ElementsAre("alice", "bob"));
}

TEST(Approvals, AreRefusedWhereTheyCouldNotBeMeant) {
  EXPECT_THAT(problems_of(R"("approvals_required":{"high":1})"), HasSubstr("\"high\" is not a tier"));
  for (std::string_view value : {"0", "11", "1.5", "\"2\"", "[]", R"({"count":0})", R"({"count":11})"}) {
    EXPECT_THAT(problems_of(fmt::format(R"("approvals_required":{{"write":{}}})", value)),
                HasSubstr("approvals_required.write"))
        << value;
  }
  EXPECT_THAT(problems_of(R"("approvals_required":{"write":1,"mutate":2})"), HasSubstr("under another name"));
  EXPECT_THAT(problems_of(R"("approvals_required":{"write":{"groups":[]}})"), HasSubstr("names no group"));
  EXPECT_THAT(problems_of(R"("approval_ttl_seconds":9)"), HasSubstr("approval_ttl_seconds: expected"));
  EXPECT_THAT(problems_of(R"("approval_ttl_seconds":604801)"), HasSubstr("approval_ttl_seconds: expected"));
}

TEST(Approvals, NeedGroupsThatSomebodyCanBeIn) {
  constexpr std::string_view rule = R"("approvals_required":{"admin":{"groups":["ops"]}})";
  EXPECT_THAT(problems_of(rule), HasSubstr("approvals_required.admin names the group \"ops\", which has no members"));
  EXPECT_EQ(problems_of(fmt::format(R"({},"approval_groups":{{"ops":["alice"]}})", rule)), "");
  EXPECT_EQ(problems_of(fmt::format(
                R"({},"oidc_issuer":"https://idp","oidc_audience":"a","oidc_role_map":{{"ops":"admin"}})", rule)),
            "");
  EXPECT_THAT(problems_of(R"("approval_groups":{"ops":["alice",7,""," x"],"":[]})"),
              ::testing::AllOf(HasSubstr("approval_groups.ops[1]: "), HasSubstr("approval_groups.ops[2]: "),
                               HasSubstr("approval_groups.ops[3]: "), HasSubstr("approval_groups.: ")));
}

TEST(Enrolment, HasTheUsualTimeWhereTheReferenceWroteNone) {
  EXPECT_EQ(read_gateway(R"("enrollment_token_ttl_seconds":0)")->enrollment_token_ttl, std::chrono::seconds(900));
  EXPECT_EQ(read_gateway(R"("enrollment_token_ttl_seconds":60)")->enrollment_token_ttl, std::chrono::seconds(60));
  EXPECT_THAT(problems_of(R"("enrollment_token_ttl_seconds":86401)"), HasSubstr("expected a whole number"));
}

}  // namespace
}  // namespace hive::config
