#include "gateway/policy/rule_text.h"

#include <gtest/gtest.h>

namespace hive::policy {
namespace {

RuleText rules() {
  config::GatewayConfig config;
  config.source_path = "gateway.json";
  config.lines = {
      {"risk_tiers.run_command", 12}, {"tokens[0]", 5}, {"tokens[1].role", 7}, {"scoped_tokens[0].tags", 9}};
  return RuleText(config);
}

TEST(RuleText, NamesTheLineAndTheValue) {
  EXPECT_EQ(rules().of("risk_tiers.run_command", "admin"), "gateway.json:12: risk_tiers.run_command = admin");
}

TEST(RuleText, SaysThatAFieldIsNotSetAndItsDefault) {
  EXPECT_EQ(rules().of("rate_limit_per_minute", ""), "gateway.json: rate_limit_per_minute is not set");
  EXPECT_EQ(rules().of("trusted_proxy_role", "operator"), "gateway.json: trusted_proxy_role is not set (operator)");
}

TEST(RuleText, FindsARoleOnItsOwnLineOrOnThatOfItsToken) {
  EXPECT_EQ(rules().of_either("tokens[0].role", "tokens[0]", "operator"), "gateway.json:5: tokens[0] = operator");
  EXPECT_EQ(rules().of_either("tokens[1].role", "tokens[1]", "admin"), "gateway.json:7: tokens[1].role = admin");
}

TEST(RuleText, AScopeThatIsNotOfTheFileNamesNoFile) {
  EXPECT_EQ(rules().of_scope({{}, {"lab"}, {}, "scoped_tokens[0]"}, "tags", "lab"),
            "gateway.json:9: scoped_tokens[0].tags = lab");
  EXPECT_EQ(rules().of_scope({{"edge-1"}, {}, {}, "as"}, "agents", "edge-1"), "as.agents = edge-1");
}

TEST(RuleText, LongListsAreCut) {
  EXPECT_EQ(list_text({"a", "b", "c"}), "a, b, c");
  EXPECT_EQ(list_text({}), "");
  std::string text = list_text(std::vector<std::string>(1000, "edge-1"));
  EXPECT_LT(text.size(), 250u);
  EXPECT_TRUE(text.ends_with(", ..."));
  EXPECT_EQ(list_text({std::string(5000, 'x')}), "...");
}

}  // namespace
}  // namespace hive::policy
