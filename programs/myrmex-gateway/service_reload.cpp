#include <algorithm>

#include "base/log.h"
#include "base/strings.h"
#include "config/gateway_check.h"
#include "gateway/oidc/provider.h"
#include "net/vault/vault.h"
#include "service_state.h"

namespace hive::gateway {

namespace {

// Which settings differ and are read at the start only.
std::vector<std::string> changed_settings_that_need_a_restart(const config::GatewayConfig& now,
                                                              const config::GatewayConfig& next) {
  std::vector<std::string> changed;
  auto compare = [&changed](std::string_view key, const auto& left, const auto& right) {
    if (left != right) changed.emplace_back(key);
  };
  compare("listen_addr", now.listen_addr, next.listen_addr);
  compare("http_addr", now.http_addr, next.http_addr);
  compare("plaintext_http_addr", now.plaintext_http_addr, next.plaintext_http_addr);
  compare("host_key_path", now.host_key_path, next.host_key_path);
  compare("authorized_keys_path", now.authorized_keys_path, next.authorized_keys_path);
  compare("tls_cert_path", now.tls_cert_path, next.tls_cert_path);
  compare("tls_key_path", now.tls_key_path, next.tls_key_path);
  compare("client_ca_cert_path", now.client_ca_cert_path, next.client_ca_cert_path);
  compare("state_dir", now.state_dir, next.state_dir);
  compare("audit_log_path", now.audit_log_path, next.audit_log_path);
  compare("gateway_id", now.gateway_id, next.gateway_id);
  compare("keepalive_seconds", now.keepalive, next.keepalive);
  compare("call_timeout_seconds", now.call_timeout, next.call_timeout);
  compare("max_agent_wait_seconds", now.max_agent_wait, next.max_agent_wait);
  compare("workers", now.workers, next.workers);
  compare("max_handshakes", now.max_handshakes, next.max_handshakes);
  compare("max_handshakes_per_address", now.max_handshakes_per_address, next.max_handshakes_per_address);
  compare("max_calls_per_caller", now.max_calls_per_caller, next.max_calls_per_caller);
  compare("max_calls_per_agent", now.max_calls_per_agent, next.max_calls_per_agent);
  return changed;
}

}  // namespace

// Whether the gateway would start with this text in the place of its file.
Result<void> Service::State::check(const std::string& text) const {
  config::GatewayConfig next = TRY(
      config::parse_gateway_config(text, config.source_path, net::vault::with_vault(config::SecretSources::system())));
  // Otherwise one admin could lift the rule that asks for two: by a token for a person who does not exist, for example.
  const std::vector<std::string>& asking = settings.load()->config->require_approval_tiers;
  bool needs_others = std::ranges::find(asking, protocol::to_string(protocol::Tier::admin)) != asking.end();
  if (needs_others && policy::make_policy(next, clock)->version() != funnel->policy()->version()) {
    return fail(ErrorCode::permission_denied,
                "who may do what, and how often, cannot be changed over the API while require_approval_tiers holds "
                "\"admin\": edit {} "
                "on the gateway's machine and send the gateway SIGHUP",
                config.source_path);
  }
  config::GatewayFindings findings = config::check_gateway_files(next);
  if (findings.errors.empty()) return {};
  return fail(ErrorCode::invalid_argument, "{}", join(findings.errors, "\n"));
}

// Names the settings that need a restart.
Result<std::vector<std::string>> Service::State::apply_file() {
  config::GatewayConfig next =
      TRY(config::load_gateway_config(config.source_path, net::vault::with_vault(config::SecretSources::system())));
  auto next_policy = policy::make_policy(next, clock, policy.get());
  std::shared_ptr<oidc::Provider> provider =
      oidc::provider_of(next, runtime, clock, settings.load()->identity_provider);
  auto next_settings = TRY(rest::make_settings(std::make_shared<const config::GatewayConfig>(next), next_policy,
                                               certificate_names, clock, provider));
  TRY_CONTEXT("authorized_keys_path", authorized_keys->check());
  // The last step that can fail, and it changes nothing when it does.
  if (https_server != nullptr) TRY_CONTEXT("certificate", https_server->reload_certificate());
  policy = next_policy;
  funnel->set_policy(next_policy);
  settings.store(next_settings);
  if (provider != nullptr) provider->prepare();
  mcp->apply(next_settings->config);
  api->apply(std::move(next_settings));
  log::set_level(next.log_level);
  return changed_settings_that_need_a_restart(config, next);
}

Result<std::vector<std::string>> Service::State::reload() {
  std::lock_guard lock(reload_mutex);
  if (stopped) return fail(ErrorCode::unavailable, "the gateway stops");
  Result<std::vector<std::string>> restart = apply_file();
  if (!restart) {
    events->configuration_reloaded(false, restart.error().message);
    return restart;
  }
  std::string keys = join(*restart, ", ");
  if (!keys.empty()) log::warning("these settings changed and need a restart", {{"keys", keys}});
  events->configuration_reloaded(true, keys.empty() ? "" : "needs a restart: " + keys);
  log::info("the configuration is reloaded", {{"file", config.source_path}});
  return restart;
}

Result<void> Service::reload() {
  TRY(state_->reload());
  return {};
}

}  // namespace hive::gateway
