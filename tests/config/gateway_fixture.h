#pragma once

#include <string>
#include <string_view>

#include <fmt/format.h>

#include "config/gateway_keys.h"

namespace hive::config::test {

/// A configuration with the required keys on its first line, and `more` behind them.
inline std::string gateway_file(std::string_view more) {
  return fmt::format(R"({{"listen_addr":":2222","authorized_keys_path":"/a","host_key_path":"/h"{}{}}})",
                     more.empty() ? "" : ",", more);
}

inline Result<GatewayConfig> read_gateway(std::string_view more) {
  static const SecretSources sources{
      .environment = [](const std::string& name) -> std::optional<std::string> {
        if (name == "TOKEN") return "from-environment";
        if (name == "HASH") return "sha256:" + std::string(64, 'a');
        return std::nullopt;
      },
      .file = [](const std::string& path) -> Result<std::string> {
        return fail(ErrorCode::not_found, "{}: No such file or directory", path);
      },
  };
  return read_gateway_config(gateway_file(more), "/etc/gateway.json", sources, false);
}

/// All problems, one a line; empty when there is none.
inline std::string problems_of(std::string_view more) {
  Result<GatewayConfig> config = read_gateway(more);
  return config ? "" : config.error().message;
}

}  // namespace hive::config::test
