#include "gateway/policy/policy_version.h"

#include <functional>
#include <set>

#include <gtest/gtest.h>

#include "gateway/policy/credentials.h"

namespace hive::policy {
namespace {

config::GatewayConfig configuration() {
  config::GatewayConfig config;
  config.auth_token = config::Secret("admin-token");
  config.tokens = {static_token("one", "operator", "ann"), static_token("two", "read-only")};
  config.scoped_tokens = {{static_token("three", "operator"), {"edge-1", "edge-2"}, {"lab"}, {"*"}, WallTime()}};
  config.mtls_cn_roles = {{"ann", "admin"}};
  config.risk_tiers = {{"run_command", "admin"}};
  config.require_approval_tiers = {"write", "admin"};
  config.approvals_required = {{"admin", {2, {"ops"}}}};
  config.approval_groups = {{"ops", {"ann", "bob"}}};
  config.agent_tags = {{"edge-1", {"lab"}}};
  return config;
}

TEST(PolicyVersion, IsTheSameWhateverTheFileLooksLike) {
  config::GatewayConfig config = configuration();
  std::string version = policy_version(config);
  EXPECT_EQ(version.size(), 64u);
  std::swap(config.tokens[0], config.tokens[1]);
  std::swap(config.scoped_tokens[0].agents[0], config.scoped_tokens[0].agents[1]);
  config.require_approval_tiers = {"admin", "write", "admin"};
  config.tokens[0].field = "tokens[7]";
  config.lines = {{"tokens[0]", 9}};
  config.source_path = "elsewhere.json";
  config.log_level = "debug";
  config.listen_addr = "[::]:2222";
  EXPECT_EQ(policy_version(config), version);
}

TEST(PolicyVersion, AHashedTokenDecidesLikeTheTokenItself) {
  config::GatewayConfig config = configuration();
  config.tokens[0].token = config::Secret(hashed("one"));
  EXPECT_EQ(policy_version(config), policy_version(configuration()));
}

TEST(PolicyVersion, ChangesWithEverythingThatDecides) {
  using Config = config::GatewayConfig;
  const std::function<void(Config&)> changes[] = {
      [](Config&) {},
      [](Config& c) { c.auth_token = config::Secret("another"); },
      [](Config& c) { c.tokens[0].token = config::Secret("another"); },
      [](Config& c) { c.tokens[0].role = "admin"; },
      [](Config& c) { c.tokens[0].identity = "bob"; },
      [](Config& c) { c.tokens.pop_back(); },
      [](Config& c) { c.scoped_tokens[0].agents.pop_back(); },
      [](Config& c) { c.scoped_tokens[0].tags[0] = "prod"; },
      [](Config& c) { c.scoped_tokens[0].tools[0] = "get_*"; },
      [](Config& c) { c.scoped_tokens[0].expires_at.reset(); },
      [](Config& c) { c.scoped_tokens[0].credential.role = "admin"; },
      [](Config& c) { std::swap(c.scoped_tokens[0].agents, c.scoped_tokens[0].tags); },
      [](Config& c) { c.client_ca_cert_path = "ca.pem"; },
      [](Config& c) { c.mtls_role = "operator"; },
      [](Config& c) { c.mtls_cn_roles["ann"] = "operator"; },
      [](Config& c) { c.trusted_proxy_secret = config::Secret("x"); },
      [](Config& c) { c.trusted_proxy_role = "admin"; },
      [](Config& c) { c.stdio_role = "admin"; },
      [](Config& c) { c.trusted_proxy_addresses = {"10.0.0.1"}; },
      [](Config& c) { c.oidc_issuer = "https://id.example.org"; },
      [](Config& c) { c.oidc_audience = "https://id.example.org"; },
      [](Config& c) { c.oidc_role_claim = "roles"; },
      [](Config& c) { c.oidc_role_map = {{"ops", "admin"}}; },
      [](Config& c) { c.risk_tiers["run_command"] = "write"; },
      [](Config& c) { c.risk_tiers["run_command:ls"] = "read"; },
      [](Config& c) { c.require_approval_tiers = {"admin"}; },
      [](Config& c) { c.approvals_required["admin"].count = 3; },
      [](Config& c) { c.approvals_required["admin"].groups = {"security"}; },
      [](Config& c) { c.approval_groups["ops"] = {"ann"}; },
      [](Config& c) { c.agent_tags["edge-1"] = {"lab", "eu"}; },
      [](Config& c) { c.rate_limit_per_minute = 5; },
  };
  std::set<std::string> versions;
  for (const auto& change : changes) {
    config::GatewayConfig config = configuration();
    change(config);
    versions.insert(policy_version(config));
  }
  EXPECT_EQ(versions.size(), std::size(changes));
}

TEST(PolicyVersion, HoldsNoSecretBeyondWhatAnAuditLogShows) {
  config::GatewayConfig config = configuration();
  config.trusted_proxy_secret = config::Secret("x");
  std::string version = policy_version(config);
  config.trusted_proxy_secret = config::Secret("y");
  EXPECT_EQ(policy_version(config), version);
}

}  // namespace
}  // namespace hive::policy
