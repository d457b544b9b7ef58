#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "config/proxy.h"
#include "config/secret.h"

namespace hive::config {

struct SecretSources;

/// One entry of allowed_commands.
struct AllowedCommand {
  std::string name;        ///< a bare word looked up on PATH at load, or an absolute path
  std::string args_regex;  ///< RE2; empty admits no argument at all
  std::chrono::milliseconds timeout = std::chrono::seconds(30);  ///< timeout_seconds
  std::size_t max_output_bytes = std::size_t{1} << 20;
  std::string user;                        ///< run as this user; empty: as the agent
  std::map<std::string, std::string> env;  ///< added to the fixed environment
};

struct GatewayAddress {
  std::string host;
  std::uint16_t port = 2222;
  /// "host:port" or "[v6]:port".
  [[nodiscard]] std::string to_string() const;
};

/// The agent's configuration, checked (reference keys of section 1.2, and ours).
struct AgentConfig {
  std::string source_path;
  std::string agent_id;
  std::vector<GatewayAddress> gateways;
  std::string private_key_path;  ///< empty: private_key is set
  Secret private_key;            ///< text of an OpenSSH key file, checked; empty: private_key_path is set
  std::string gateway_host_key;  ///< pinned public key line; empty: trust on first use
  /// Default: private_key_path + ".gateway_hostkey"; without that path, "gateway_hostkey" in the file's folder.
  std::string known_host_key_path;
  std::optional<ProxyAddress> proxy;  ///< on the way to every gateway whose host is not in no_proxy
  std::vector<std::string> no_proxy;  ///< hosts of gateways
  std::vector<AllowedCommand> allowed_commands;
  std::vector<std::string> file_read_roots;  ///< folders under which file_read may read; empty: nothing
  std::vector<std::string> log_paths;        ///< text logs for read_logs; default: the reference's four
  std::chrono::milliseconds keepalive = std::chrono::seconds(15);  ///< keepalive_seconds
  std::size_t max_concurrent_calls = 64;
  std::string log_level = "info";

  /// The proxy on the way to a gateway; null: none.
  [[nodiscard]] const ProxyAddress* proxy_for(const GatewayAddress& gateway) const;
};

/// Splits and checks "host:port", "[v6]:port" or "host" (port 2222).
Result<GatewayAddress> parse_gateway_address(std::string_view text);

/// Loads and checks a file. All problems are reported together, one a line, each naming file and field.
/// Relative paths in the file are relative to the file's folder. `sources` say where references are looked up; without
/// them, in the environment and in files alone. Blocks.
Result<AgentConfig> load_agent_config(const std::string& path);
Result<AgentConfig> load_agent_config(const std::string& path, const SecretSources& sources);
/// What a file says as far as it can be understood, with all that is wrong with it: for reports, never to run with.
struct AgentConfigDraft {
  AgentConfig config;          ///< an entry of allowed_commands that `error` names is there, perhaps incomplete
  std::optional<Error> error;  ///< what load_agent_config() fails with
};
AgentConfigDraft inspect_agent_config(const std::string& path, const SecretSources& sources);
Result<AgentConfig> parse_agent_config(std::string_view text, const std::string& path);
Result<AgentConfig> parse_agent_config(std::string_view text, const std::string& path, const SecretSources& sources);

}  // namespace hive::config
