#include "gateway/policy/tier_table.h"

#include <gtest/gtest.h>

namespace hive::policy {
namespace {

using protocol::Tier;

TierTable table(std::map<std::string, std::string> risk_tiers) {
  config::GatewayConfig config;
  config.source_path = "gateway.json";
  config.risk_tiers = std::move(risk_tiers);
  config.lines = {{"risk_tiers.run_command", 22}, {"risk_tiers.run_command:chaos.sh", 23}};
  return {config, RuleText(config)};
}

TEST(TierTable, BuiltInToolsCarryTheirTierAndOthersAreWrite) {
  TierTable tiers = table({});
  EXPECT_EQ(tiers.tier_of("get_metrics", "{}"), Tier::read);
  EXPECT_EQ(tiers.tier_of("run_command", "{}"), Tier::write);
  EXPECT_EQ(tiers.tier_of("somebody_elses_tool", "{}"), Tier::write);
  EXPECT_EQ(tiers.explain("run_command", "{}").rule, "built-in: run_command is of tier write");
  EXPECT_EQ(tiers.explain("somebody_elses_tool", "{}").rule,
            "built-in: a tool that nobody classified is of tier write");
}

TEST(TierTable, ARuleForACommandComesBeforeTheRuleForTheTool) {
  TierTable tiers = table({{"run_command", "read"}, {"run_command:chaos.sh", "admin"}, {"get_metrics", "write"}});
  EXPECT_EQ(tiers.tier_of("run_command", R"({"name":"chaos.sh","args":[]})"), Tier::admin);
  EXPECT_EQ(tiers.tier_of("run_command", R"({"name":"uptime"})"), Tier::read);
  EXPECT_EQ(tiers.tier_of("get_metrics", R"({"name":"chaos.sh"})"), Tier::write);
  EXPECT_EQ(tiers.explain("run_command", R"({"name":"chaos.sh"})").rule,
            "gateway.json:23: risk_tiers.run_command:chaos.sh = admin");
  EXPECT_EQ(tiers.explain("run_command", R"({"name":"uptime"})").rule,
            "gateway.json:22: risk_tiers.run_command = read");
}

TEST(TierTable, ACommandDoesNotHideBehindEscapesOrTwoNames) {
  TierTable tiers = table({{"run_command", "read"}, {"run_command:chaos.sh", "admin"}});
  EXPECT_EQ(tiers.tier_of("run_command", R"({"\u006eame":"ch\u0061os.sh"})"), Tier::admin);
  EXPECT_EQ(tiers.tier_of("run_command", R"({"args":[{"name":"uptime"}],"name":"chaos.sh"})"), Tier::admin);
  for (const char* unclear : {R"({"name":"uptime","name":"chaos.sh"})", R"({"name":["chaos.sh"]})", R"(["chaos.sh"])",
                              R"({"name":"uptime")", "", R"({"name":null})"})
    EXPECT_EQ(tiers.tier_of("run_command", unclear), Tier::admin) << unclear;
  // Without a name there is no command, and the agent refuses the call.
  EXPECT_EQ(tiers.tier_of("run_command", "{}"), Tier::read);
}

TEST(TierTable, ACommandDoesNotHideBehindANameThatOtherAgentsReadAsWell) {
  TierTable tiers = table({{"run_command:uptime", "read"}, {"run_command:chaos.sh", "admin"}});
  for (const char* arguments : {R"({"name":"uptime","Name":"chaos.sh"})", R"({"NAME":"chaos.sh"})",
                                R"({"\u004eame":"chaos.sh","name":"uptime"})"})
    EXPECT_EQ(tiers.tier_of("run_command", arguments), Tier::admin) << arguments;
  EXPECT_EQ(tiers.tier_of("run_command", R"({"name":"uptime","names":"chaos.sh"})"), Tier::read);
}

TEST(TierTable, UnclearArgumentsAreNeverCheaperThanTheTool) {
  TierTable tiers = table({{"run_command:uptime", "read"}});
  EXPECT_EQ(tiers.tier_of("run_command", R"({"name":"uptime"})"), Tier::read);
  EXPECT_EQ(tiers.tier_of("run_command", R"({"name":1})"), Tier::write);
  EXPECT_EQ(tiers.explain("run_command", R"({"name":1})").rule, "built-in: run_command is of tier write");
}

TEST(TierTable, ReadingAndExplainingAgree) {
  TierTable tiers = table({{"run_command", "admin"}, {"run_command:uptime", "read"}, {"read_logs", "write"}});
  for (const char* tool : {"run_command", "read_logs", "get_metrics", "other"}) {
    for (const char* arguments : {"{}", R"({"name":"uptime"})", R"({"name":"ls"})", "x"})
      EXPECT_EQ(tiers.tier_of(tool, arguments), tiers.explain(tool, arguments).tier);
  }
}

}  // namespace
}  // namespace hive::policy
