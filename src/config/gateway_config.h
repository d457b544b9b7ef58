#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "config/secret.h"

namespace hive::config {

struct SecretSources;

/// A bearer token and its role. The token is written out, or stands as "sha256:" and the 64 lower-case hexadecimal
/// digits of its SHA-256, which `myrmex token hash` prints.
struct StaticToken {
  Secret token;
  std::string role;           ///< "admin", "operator" or "read-only", checked
  std::string identity = {};  ///< whose token it is; empty: nobody's in particular
  std::string field = {};     ///< the name under which messages and `lines` know it: "tokens[2]"
};

/// A bearer token that reaches a part of the fleet.
struct ScopedToken {
  StaticToken credential;
  std::vector<std::string> agents;  ///< ids, or globs with "*"; agents or tags must say something
  std::vector<std::string> tags;    ///< tags of agent_tags, or globs with "*"
  std::vector<std::string> tools;   ///< names without prefix, or globs with "*"; never empty
  std::optional<WallTime> expires_at;
};

/// How many people must agree to a call of a tier, and of which groups they must be.
struct ApprovalRule {
  unsigned count = 1;
  std::vector<std::string> groups;  ///< of approval_groups or of an identity provider; empty: any admin
};

/// An MCP server behind the gateway, of `upstream_servers` or `external_mcp_servers`.
struct UpstreamConfig {
  std::string name;       ///< in the grammar of agent ids; unique
  std::string prefix;     ///< of its tools and prompts; unique; empty for one at most
  std::string transport;  ///< "stdio", "http", "sse"
  std::string command;    ///< stdio: a bare word or an absolute path
  std::vector<std::string> arguments;
  std::map<std::string, Secret> environment;
  std::string url;  ///< http, sse: https, or http on loopback
  Secret auth_token;
  std::map<std::string, Secret> headers;
  std::string ca_certificate_path;       ///< PEM, trusted for this server; empty: the system's store
  std::chrono::milliseconds timeout{0};  ///< of its calls; 0: call_timeout
  bool enabled = true;
  bool pin_tools = true;  ///< hold back tools whose descriptions changed, until an admin accepts them
  std::string field;      ///< "external_mcp_servers[2]"

  bool operator==(const UpstreamConfig&) const = default;
};

/// The gateway's configuration, checked (reference section 10.1, and ours). Keys of features that come later are known
/// and listed in `without_effect`.
struct GatewayConfig {
  std::string source_path;
  std::string listen_addr;          ///< SSH
  std::string http_addr;            ///< HTTPS; empty: off
  std::string plaintext_http_addr;  ///< HTTP, loopback addresses only; empty: off
  std::string host_key_path;
  std::string authorized_keys_path;
  std::string tls_cert_path;
  std::string tls_key_path;    ///< both empty: a certificate is made once and kept in state_dir
  std::string state_dir;       ///< default: folder of the configuration file
  std::string audit_log_path;  ///< empty: no audit log, and calls of tier write and admin are refused
  Secret auth_token;           ///< admin
  std::vector<StaticToken> tokens;
  std::vector<ScopedToken> scoped_tokens;
  std::string client_ca_cert_path;                   ///< PEM; empty: no client certificates
  std::string mtls_role;                             ///< of a common name that is not listed; empty: none
  std::map<std::string, std::string> mtls_cn_roles;  ///< common name -> role
  Secret trusted_proxy_secret;                       ///< empty: no proxy is trusted
  std::string trusted_proxy_secret_header;           ///< lower case
  std::string trusted_proxy_identity_header;         ///< lower case
  std::string trusted_proxy_role = "operator";
  std::vector<std::string> trusted_proxy_addresses;  ///< addresses and networks (CIDR) of the proxies; checked
  std::string stdio_role = "operator";               ///< of the client that --mcp-stdio serves
  std::string oidc_issuer;                           ///< https URL, or http on loopback; empty: off
  std::string oidc_audience;
  std::string oidc_role_claim = "groups";
  std::map<std::string, std::string> oidc_role_map;  ///< value of the claim -> role
  std::string oidc_ca_cert_path;                     ///< trusted for the issuer; empty: the system's store
  /// Tool, or "run_command:NAME" for one command -> "read", "write", "admin" (aliases resolved).
  std::map<std::string, std::string> risk_tiers;
  std::vector<std::string> require_approval_tiers;
  std::chrono::seconds approval_ttl{900};                  ///< approval_ttl_seconds
  std::map<std::string, ApprovalRule> approvals_required;  ///< by tier; a tier that is not there needs one admin
  std::map<std::string, std::vector<std::string>> approval_groups;  ///< group -> identities
  std::chrono::seconds enrollment_token_ttl{900};                   ///< enrollment_token_ttl_seconds
  std::map<std::string, std::vector<std::string>> agent_tags;
  int rate_limit_per_minute = 0;
  std::vector<UpstreamConfig> upstreams;
  std::chrono::milliseconds keepalive = std::chrono::seconds(15);     ///< keepalive_seconds
  std::chrono::milliseconds call_timeout = std::chrono::seconds(35);  ///< call_timeout_seconds
  std::chrono::seconds max_agent_wait{600};                           ///< max_agent_wait_seconds
  std::chrono::seconds fleet_retention = std::chrono::days(30);       ///< fleet_retention_days
  std::size_t workers = 0;                                            ///< 0: one a core
  std::size_t max_handshakes = 256;                                   ///< SSH connections in their handshake at once
  std::size_t max_handshakes_per_address = 128;
  std::size_t max_calls_per_caller = 1024;  ///< in flight
  std::size_t max_calls_per_agent = 1024;   ///< in flight
  std::vector<std::string> allowed_origins;
  std::string gateway_id = "gateway";  ///< this instance in the fleet's lists and in the audit log's checkpoints
  std::string log_level = "info";
  std::vector<std::string> without_effect;  ///< keys that are set and known, but not built yet
  /// The line of every value in the file, by its field ("risk_tiers.run_command:uptime", "scoped_tokens[2].agents").
  std::map<std::string, std::size_t, std::less<>> lines;

  /// "FILE:LINE: FIELD" for a field that stands in the file, "FILE: FIELD is not set" for one that does not.
  [[nodiscard]] std::string where(std::string_view field) const;
};

/// Loads and checks a file. All problems are reported together, one a line, each naming file and field. `sources` say
/// where secret references are looked up; without them, in the environment and in files alone. Blocks.
Result<GatewayConfig> load_gateway_config(const std::string& path);
Result<GatewayConfig> load_gateway_config(const std::string& path, const SecretSources& sources);
/// The same for a text that is to become the file at `path`; modes of files are not looked at.
Result<GatewayConfig> parse_gateway_config(std::string_view text, const std::string& path);
Result<GatewayConfig> parse_gateway_config(std::string_view text, const std::string& path,
                                           const SecretSources& sources);

}  // namespace hive::config
