#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/result.h"

namespace hive::config {

/// A secret of the configuration. Prints as "[redacted]" wherever it is formatted by mistake.
class Secret {
 public:
  Secret() = default;
  explicit Secret(std::string value) : value_(std::move(value)) {}
  [[nodiscard]] const std::string& reveal() const { return value_; }
  [[nodiscard]] bool empty() const { return value_.empty(); }
  bool operator==(const Secret&) const = default;

 private:
  std::string value_;
};

struct StaticToken {
  Secret token;
  std::string role;  ///< "admin", "operator" or "read-only", checked
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
  std::map<std::string, std::string> risk_tiers;  ///< tool -> "read", "write", "admin" (aliases resolved)
  std::vector<std::string> require_approval_tiers;
  std::map<std::string, std::vector<std::string>> agent_tags;
  int rate_limit_per_minute = 0;
  std::chrono::milliseconds keepalive = std::chrono::seconds(15);     ///< keepalive_seconds
  std::chrono::milliseconds call_timeout = std::chrono::seconds(35);  ///< call_timeout_seconds
  std::size_t workers = 0;                                            ///< 0: one a core
  std::vector<std::string> allowed_origins;
  std::string gateway_id = "gateway";  ///< this instance in the fleet's lists and in the audit log's checkpoints
  std::string log_level = "info";
  std::vector<std::string> without_effect;  ///< keys that are set and known, but not built yet
};

/// Loads and checks a file. All problems are reported together, one a line, each naming file and field.
Result<GatewayConfig> load_gateway_config(const std::string& path);
Result<GatewayConfig> parse_gateway_config(std::string_view text, const std::string& path);

}  // namespace hive::config

/// So that a secret that is formatted by mistake shows nothing.
template <>
struct fmt::formatter<hive::config::Secret> : fmt::formatter<std::string_view> {
  auto format(const hive::config::Secret& /*secret*/, fmt::format_context& context) const {
    return fmt::formatter<std::string_view>::format("[redacted]", context);
  }
};
