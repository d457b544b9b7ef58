#include "config/gateway_keys.h"

#include <chrono>

#include "base/strings.h"
#include "config/address.h"
#include "config/gateway_access.h"
#include "config/gateway_objects.h"
#include "config/gateway_rules.h"
#include "config/gateway_upstreams.h"
#include "config/names.h"

namespace hive::config {

namespace {

template <auto Member>
void store_listen_address(Reader& reader, const Value& value, GatewayDraft& draft) {
  std::optional<std::string> text = reader.string(value);
  if (!text || text->empty()) return;
  if (Result<ListenAddress> address = parse_listen_address(*text); !address) {
    reader.problem(value, address.error().message);
    return;
  }
  draft.*Member = *std::move(text);
}

// There is no TLS on this listener: a token that crosses a network on it would be anyone's.
void read_plaintext_address(Reader& reader, const Value& value, GatewayDraft& draft) {
  std::optional<std::string> text = reader.string(value);
  if (!text || text->empty()) return;
  Result<ListenAddress> address = parse_listen_address(*text);
  if (!address) {
    reader.problem(value, address.error().message);
  } else if (!is_loopback_literal(address->host)) {
    reader.problem(value, fmt::format("{} is not a loopback address: without TLS only 127.0.0.1 or [::1] may be used; "
                                      "use http_addr for others",
                                      quote(*text)));
  } else {
    draft.plaintext_http_addr = *std::move(text);
  }
}

// It names the audit log in its checkpoints, where blanks and "+" have a meaning of their own.
void read_gateway_id(Reader& reader, const Value& value, GatewayDraft& draft) {
  std::optional<std::string> id = reader.string(value);
  if (!id) return;
  bool sound = id->size() <= 64 && std::ranges::all_of(*id, [](char c) {
                 return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
                        c == '_' || c == '-';
               });
  if (sound) {
    draft.gateway_id = *std::move(id);
  } else {
    reader.problem(value, "must be at most 64 letters, digits, \".\", \"_\" and \"-\"");
  }
}

// RFC 6454: scheme, host and port, nothing after them.
void read_allowed_origins(Reader& reader, const Value& value, GatewayDraft& draft) {
  for (const Value& element : reader.elements(value)) {
    std::optional<std::string> origin = reader.non_empty_string(element);
    if (!origin) continue;
    std::size_t scheme = origin->starts_with("https://") ? 8 : origin->starts_with("http://") ? 7 : 0;
    if (scheme == 0 || scheme == origin->size() || origin->find_first_of("/?#* @", scheme) != std::string::npos) {
      reader.problem(element, fmt::format("{} is not an origin; write it as browsers send it: https://host or "
                                          "https://host:port, without a path, without \"*\"",
                                          quote(*origin)));
      continue;
    }
    draft.allowed_origins.push_back(*std::move(origin));
  }
}

// The reference took 0 for "as usual", and wrote it.
void read_enrollment_token_ttl(Reader& reader, const Value& value, GatewayDraft& draft) {
  std::optional<std::int64_t> seconds = reader.integer(value, 0, 86'400);
  if (seconds && *seconds > 0) draft.enrollment_token_ttl = std::chrono::seconds(*seconds);
}

void read_fleet_retention(Reader& reader, const Value& value, GatewayDraft& draft) {
  std::optional<std::int64_t> days = reader.integer(value, 1, 3650);
  if (days) draft.fleet_retention = std::chrono::days(*days);
}

void read_peer_gateways(Reader& reader, const Value& value, GatewayDraft& draft) {
  for (const Value& element : reader.elements(value)) {
    draft.has_peers = true;
    (void)read_url(reader, element);
  }
}

void check_url(Reader& reader, const Value& value, GatewayDraft& /*draft*/) {
  if (says_something(value.raw)) (void)read_url(reader, value);
}

void check_secret_url(Reader& reader, const Value& value, GatewayDraft& /*draft*/) {
  if (says_something(value.raw)) read_secret_url(reader, value);
}

template <auto Flag>
void check_flagged_secret(Reader& reader, const Value& value, GatewayDraft& draft) {
  if (!says_something(value.raw)) return;
  draft.*Flag = true;
  (void)reader.secret(value);
}

void check_llm_provider(Reader& reader, const Value& value, GatewayDraft& /*draft*/) {
  static constexpr std::string_view providers[] = {"ollama",  "openai", "vllm", "llamacpp", "openai-compatible",
                                                   "disabled"};
  if (says_something(value.raw)) (void)reader.one_of(value, providers);
}

void check_sample_ratio(Reader& reader, const Value& value, GatewayDraft& /*draft*/) {
  (void)reader.number(value, 0, 1);
}

using D = GatewayDraft;

constexpr std::string_view no_llm = "the assistant is not built yet";
constexpr std::string_view no_peers = "no other gateway is asked or answered";
constexpr std::string_view no_watch = "polling and history are not built yet";
constexpr std::string_view no_alerts = "alerts are not built yet: nothing is sent";
constexpr std::string_view no_traces = "traces are not built yet: nothing is sent";

constexpr Key<D> rows[] = {
    // Listeners and keys.
    {{.name = "listen_addr",
      .type = "address",
      .default_value = "",
      .required = true,
      .remedy = "agents connect to it; usually \":2222\""},
     store_listen_address<&D::listen_addr>},
    {{.name = "http_addr", .type = "address", .default_value = "off"}, store_listen_address<&D::http_addr>},
    {{.name = "plaintext_http_addr", .type = "loopback address", .default_value = "off"}, read_plaintext_address},
    {{.name = "host_key_path",
      .type = "path",
      .default_value = "",
      .required = true,
      .remedy = "by this key agents know the gateway, and it signs the audit log; make one with: ssh-keygen -t ed25519 "
                "-N \"\" -C myrmex-gateway -f host_key"},
     store_required_path<&D::host_key_path>},
    {{.name = "authorized_keys_path",
      .type = "path",
      .default_value = "",
      .required = true,
      .remedy = "it holds the agents' public keys, one a line, each with the agent's id as its comment"},
     store_required_path<&D::authorized_keys_path>},
    {{.name = "tls_cert_path", .type = "path", .default_value = "a certificate is made and kept in state_dir"},
     store_path<&D::tls_cert_path>},
    {{.name = "tls_key_path", .type = "path", .default_value = ""}, store_path<&D::tls_key_path>},
    {{.name = "state_dir", .type = "path", .default_value = "the folder of the file"}, store_path<&D::state_dir>},
    {{.name = "audit_log_path", .type = "path", .default_value = "no log: calls of tier write and admin are refused"},
     store_path<&D::audit_log_path>},
    // Who may call.
    {{.name = "auth_token", .type = "string", .default_value = "", .secret = true}, read_auth_token},
    {{.name = "tokens",
      .type = "object: token to role or object",
      .default_value = "{}",
      .secret = true,
      .secret_names = true},
     read_tokens},
    {{.name = "scoped_tokens", .type = "list of objects", .default_value = "[]"}, read_scoped_tokens},
    {{.name = "client_ca_cert_path", .type = "path", .default_value = ""}, read_client_ca},
    {{.name = "mtls_cn_roles", .type = "object: name to role", .default_value = "{}"}, read_mtls_cn_roles},
    {{.name = "mtls_role", .type = "role", .default_value = ""}, read_mtls_role},
    {{.name = "trusted_proxy_secret", .type = "string", .default_value = "", .secret = true}, read_proxy_secret},
    {{.name = "trusted_proxy_secret_header", .type = "string", .default_value = ""}, read_proxy_secret_header},
    {{.name = "trusted_proxy_identity_header", .type = "string", .default_value = ""}, read_proxy_identity_header},
    {{.name = "trusted_proxy_addresses", .type = "list of addresses and networks", .default_value = "[]"},
     read_proxy_addresses},
    {{.name = "trusted_proxy_role", .type = "role", .default_value = "operator"}, read_proxy_role},
    {{.name = "stdio_role", .type = "role", .default_value = "operator"}, read_stdio_role},
    {{.name = "oidc_issuer", .type = "URL", .default_value = ""}, read_oidc_issuer},
    {{.name = "oidc_audience", .type = "string", .default_value = ""}, store_string<&D::oidc_audience>},
    {{.name = "oidc_role_claim", .type = "string", .default_value = "groups"}, read_oidc_role_claim},
    {{.name = "oidc_role_map", .type = "object: value of the claim to role", .default_value = "{}"},
     read_oidc_role_map},
    {{.name = "oidc_ca_cert_path", .type = "path", .default_value = "the system's authorities"},
     store_path<&D::oidc_ca_cert_path>},
    {{.name = "enrollment_token_ttl_seconds", .type = "whole number, 0 to 86400", .default_value = "900"},
     read_enrollment_token_ttl},
    {{.name = "allowed_origins", .type = "list of strings", .default_value = "[]"}, read_allowed_origins},
    // What may be called.
    {{.name = "risk_tiers", .type = "object: tool or command to tier", .default_value = "{}"}, read_risk_tiers},
    {{.name = "require_approval_tiers", .type = "list of tiers", .default_value = "[]"}, read_approval_tiers},
    {{.name = "approvals_required", .type = "object: tier to number or object", .default_value = "{} (one admin)"},
     read_approvals_required},
    {{.name = "approval_groups", .type = "object: group to list of identities", .default_value = "{}"},
     read_approval_groups},
    {{.name = "approval_ttl_seconds", .type = "whole number, 10 to 604800", .default_value = "900"},
     store_seconds<&D::approval_ttl, 10, 604'800>},
    {{.name = "rate_limit_per_minute", .type = "whole number, 0 to 1000000", .default_value = "0 (off)"},
     store_integer<&D::rate_limit_per_minute, 0, 1'000'000>},
    {{.name = "agent_tags", .type = "object: agent to list of tags", .default_value = "{}"}, read_agent_tags},
    // MCP servers behind the gateway.
    {{.name = "upstream_servers", .type = "list of objects", .default_value = "[]"}, read_upstream_servers},
    {{.name = "external_mcp_servers", .type = "list of objects", .default_value = "[]"}, read_external_mcp_servers},
    // How it runs.
    {{.name = "keepalive_seconds", .type = "whole number, 1 to 3600", .default_value = "15"},
     store_seconds<&D::keepalive, 1, 3600>},
    {{.name = "call_timeout_seconds", .type = "whole number, 1 to 3660", .default_value = "35"},
     store_seconds<&D::call_timeout, 1, 3660>},
    {{.name = "max_agent_wait_seconds", .type = "whole number, 0 to 86400", .default_value = "600"},
     store_seconds<&D::max_agent_wait, 0, 86'400>},
    {{.name = "fleet_retention_days", .type = "whole number, 1 to 3650", .default_value = "30"}, read_fleet_retention},
    {{.name = "workers", .type = "whole number, 0 to 256", .default_value = "0 (one a core)"},
     store_integer<&D::workers, 0, 256>},
    {{.name = "max_handshakes", .type = "whole number, 1 to 4096", .default_value = "256"},
     store_integer<&D::max_handshakes, 1, 4096>},
    {{.name = "max_handshakes_per_address", .type = "whole number, 1 to 4096", .default_value = "128"},
     store_integer<&D::max_handshakes_per_address, 1, 4096>},
    {{.name = "max_calls_per_caller", .type = "whole number, 1 to 100000", .default_value = "1024"},
     store_integer<&D::max_calls_per_caller, 1, 100'000>},
    {{.name = "max_calls_per_agent", .type = "whole number, 1 to 100000", .default_value = "1024"},
     store_integer<&D::max_calls_per_agent, 1, 100'000>},
    {{.name = "gateway_id", .type = "string", .default_value = "gateway"}, read_gateway_id},
    {{.name = "log_level", .type = "debug, info, warning or error", .default_value = "info"},
     store_log_level<&D::log_level>},
    // Known, and not built yet.
    {{.name = "ollama_url", .type = "URL", .default_value = "", .no_effect = no_llm}, check_url},
    {{.name = "ollama_model", .type = "string", .default_value = "", .no_effect = no_llm}, check_string},
    {{.name = "llm_provider", .type = "string", .default_value = "", .no_effect = no_llm}, check_llm_provider},
    {{.name = "llm_api_key", .type = "string", .default_value = "", .secret = true, .no_effect = no_llm},
     check_optional_secret},
    {{.name = "antigravity_token", .type = "string", .default_value = "", .secret = true, .no_effect = no_llm},
     check_optional_secret},
    {{.name = "max_orchestration_steps", .type = "whole number, 0 to 100", .default_value = "3", .no_effect = no_llm},
     check_integer<0, 100>},
    {{.name = "scheduled_tasks",
      .type = "list of objects",
      .default_value = "[]",
      .no_effect = "schedules are not built yet: nothing is run"},
     check_scheduled_tasks},
    {{.name = "metrics_enabled",
      .type = "true or false",
      .default_value = "false",
      .no_effect = "the route /metrics is not built yet"},
     check_boolean},
    {{.name = "metrics_poll_seconds",
      .type = "whole number, 0 to 86400",
      .default_value = "0 (off)",
      .no_effect = no_watch},
     check_integer<0, 86'400>},
    {{.name = "metrics_history_size",
      .type = "whole number, 0 to 1000000",
      .default_value = "60",
      .no_effect = no_watch},
     check_integer<0, 1'000'000>},
    {{.name = "alert_thresholds", .type = "object", .default_value = "off", .no_effect = no_alerts},
     check_alert_thresholds},
    {{.name = "alert_webhook_url", .type = "URL", .default_value = "off", .secret = true, .no_effect = no_alerts},
     check_secret_url},
    {{.name = "alertmanager_url", .type = "URL", .default_value = "off", .secret = true, .no_effect = no_alerts},
     check_secret_url},
    {{.name = "alert_delivery_retries",
      .type = "whole number, -1 to 100",
      .default_value = "0 (three)",
      .no_effect = no_alerts},
     check_integer<-1, 100>},
    {{.name = "alert_webhook_headers",
      .type = "object of strings",
      .default_value = "{}",
      .secret = true,
      .no_effect = no_alerts},
     check_secret_map},
    {{.name = "alertmanager_headers",
      .type = "object of strings",
      .default_value = "{}",
      .secret = true,
      .no_effect = no_alerts},
     check_secret_map},
    {{.name = "state_path", .type = "path", .default_value = "", .no_effect = "not used: state is kept in state_dir"},
     check_string},
    {{.name = "state_save_seconds",
      .type = "whole number, 0 to 86400",
      .default_value = "30",
      .no_effect = "not used: state is saved as it changes"},
     check_integer<0, 86'400>},
    {{.name = "peer_gateways", .type = "list of URLs", .default_value = "[]", .no_effect = no_peers},
     read_peer_gateways},
    {{.name = "cluster_secret", .type = "string", .default_value = "", .secret = true, .no_effect = no_peers},
     check_flagged_secret<&D::has_cluster_secret>},
    {{.name = "peer_sync_seconds", .type = "whole number, 0 to 3600", .default_value = "10", .no_effect = no_peers},
     check_integer<0, 3600>},
    {{.name = "peer_insecure_skip_verify", .type = "true or false", .default_value = "false", .no_effect = no_peers},
     check_boolean},
    {{.name = "tracing_enabled", .type = "true or false", .default_value = "false", .no_effect = no_traces},
     check_boolean},
    {{.name = "otlp_endpoint", .type = "string", .default_value = "localhost:4318", .no_effect = no_traces},
     check_string},
    {{.name = "otlp_insecure", .type = "true or false", .default_value = "false", .no_effect = no_traces},
     check_boolean},
    {{.name = "otlp_headers",
      .type = "object of strings",
      .default_value = "{}",
      .secret = true,
      .no_effect = no_traces},
     check_secret_map},
    {{.name = "trace_sample_ratio", .type = "number, 0 to 1", .default_value = "1", .no_effect = no_traces},
     check_sample_ratio},
    {{.name = "trace_service_name", .type = "string", .default_value = "myrmex-gateway", .no_effect = no_traces},
     check_string},
};

}  // namespace

std::span<const Key<GatewayDraft>> gateway_keys() {
  return rows;
}

std::vector<PlacedKey> gateway_config_keys() {
  std::vector<PlacedKey> keys;
  for (const Key<GatewayDraft>& key : rows) {
    keys.push_back({std::string(key.info.name), key.info});
  }
  append_token_keys(keys);
  append_rule_keys(keys);
  append_upstream_keys(keys);
  append_object_keys(keys);
  return keys;
}

}  // namespace hive::config
