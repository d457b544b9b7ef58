#include "gateway/policy/policy_version.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <span>

#include "base/strings.h"
#include "crypto/sha256.h"
#include "gateway/policy/token_names.h"
#include "protocol/tools.h"

namespace hive::policy {

namespace {

class Digester {
 public:
  void add(std::uint64_t number) {
    std::array<std::uint8_t, 8> bytes{};
    for (std::size_t i = 0; i < bytes.size(); ++i)
      bytes[i] = static_cast<std::uint8_t>(number >> (8 * i));
    hash_.update(bytes);
  }
  void add(std::string_view text) {
    add(static_cast<std::uint64_t>(text.size()));
    hash_.update(text);
  }
  void add(const std::string& text) { add(std::string_view(text)); }
  // In these lists the order decides nothing, nor does an entry that stands there twice.
  void add(const std::vector<std::string>& list) {
    std::set<std::string_view> sorted(list.begin(), list.end());
    add(static_cast<std::uint64_t>(sorted.size()));
    for (std::string_view text : sorted)
      add(text);
  }
  template <class Value>
  void add(const std::map<std::string, Value>& map) {
    add(static_cast<std::uint64_t>(map.size()));
    for (const auto& [name, value] : map) {
      add(name);
      add(value);
    }
  }
  void add(const config::ApprovalRule& rule) {
    add(static_cast<std::uint64_t>(rule.count));
    add(rule.groups);
  }
  std::string finish() { return to_hex(hash_.finish()); }

 private:
  crypto::Sha256 hash_;
};

// What a token gives, by the name of its principal; the order in the file decides nothing.
std::map<std::string, std::vector<std::string>> static_tokens(const config::GatewayConfig& config) {
  std::map<std::string, std::vector<std::string>> tokens;
  auto put = [&](const config::Secret& token, std::string_view role, const std::string& identity) {
    // A token that could never be shown decides nothing, and the Authenticator refuses the configuration.
    if (auto digest = token_digest(token)) {
      tokens[token_principal_name(*digest)] = {"role " + std::string(role), "identity " + identity};
    }
  };
  if (!config.auth_token.empty()) put(config.auth_token, "admin", "");
  for (const config::StaticToken& token : config.tokens)
    put(token.token, token.role, token.identity);
  return tokens;
}

void add_scoped_tokens(Digester& digest, const config::GatewayConfig& config) {
  std::map<std::string, const config::ScopedToken*> tokens;
  for (const config::ScopedToken& token : config.scoped_tokens) {
    if (auto key = token_digest(token.credential.token)) tokens[token_principal_name(*key)] = &token;
  }
  digest.add(static_cast<std::uint64_t>(tokens.size()));
  for (const auto& [name, token] : tokens) {
    digest.add(name);
    digest.add(token->credential.role);
    digest.add(token->credential.identity);
    digest.add(token->agents);
    digest.add(token->tags);
    digest.add(token->tools);
    auto expiry = token->expires_at.value_or(WallTime()).time_since_epoch();
    digest.add(static_cast<std::uint64_t>(token->expires_at.has_value()));
    digest.add(static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::milliseconds>(expiry).count()));
  }
}

}  // namespace

std::string policy_version(const config::GatewayConfig& config) {
  Digester digest;
  digest.add(std::string_view("myrmex-hive policy v1"));
  digest.add(static_tokens(config));
  add_scoped_tokens(digest, config);
  digest.add(config.client_ca_cert_path);
  digest.add(config.mtls_role);
  digest.add(config.mtls_cn_roles);
  digest.add(static_cast<std::uint64_t>(config.trusted_proxy_secret.empty() ? 0 : 1));
  digest.add(config.trusted_proxy_secret_header);
  digest.add(config.trusted_proxy_identity_header);
  digest.add(config.trusted_proxy_role);
  digest.add(config.stdio_role);
  digest.add(config.trusted_proxy_addresses);
  digest.add(config.oidc_issuer);
  digest.add(config.oidc_ca_cert_path);
  digest.add(config.oidc_audience);
  digest.add(config.oidc_role_claim);
  digest.add(config.oidc_role_map);
  digest.add(config.risk_tiers);
  digest.add(config.require_approval_tiers);
  digest.add(config.approvals_required);
  digest.add(config.approval_groups);
  digest.add(config.agent_tags);
  digest.add(static_cast<std::uint64_t>(std::max(0, config.rate_limit_per_minute)));
  for (const protocol::ToolDescription& tool : protocol::builtin_tools()) {
    digest.add(tool.name);
    digest.add(protocol::to_string(tool.tier));
  }
  return digest.finish();
}

}  // namespace hive::policy
