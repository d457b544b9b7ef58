#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace hive::cli {

/// Looks up an environment variable. Set but empty counts as not set.
using Environment = std::function<std::optional<std::string>(std::string_view name)>;

Environment process_environment();

/// The options that every command takes, as they stand on the command line.
struct GlobalOptions {
  std::string url = {};
  std::string token = {};
  std::string token_file = {};
  std::string profile = {};
  std::string ca_certificate_path = {};
  bool insecure = false;
  std::optional<std::chrono::milliseconds> timeout = {};
};

/// How to reach the gateway, and as whom.
struct Connection {
  std::string url;           ///< without trailing slashes
  std::string url_source;    ///< "--url", "MYRMEX_URL", "profile NAME" or "default"
  std::string token;         ///< empty: none was given
  std::string token_source;  ///< for `doctor`: never the token itself
  std::string ca_certificate_path;
  bool verify_tls = true;
  std::vector<std::string> warnings;
};

inline constexpr std::string_view default_url = "https://localhost:8080";

/// Joins options, environment and profile file. Options win over the environment, and the environment over the profile,
/// unless the profile was asked for by --profile. A profile's token and certificate go to that profile's URL only.
/// Refuses token and profile files that others can read, and a token over plain http to another machine (unless
/// --insecure).
Result<Connection> resolve_connection(const GlobalOptions& options, const Environment& environment);

/// $XDG_CONFIG_HOME/myrmex/config.json or ~/.config/myrmex/config.json; empty when neither variable is set.
std::string profile_file_path(const Environment& environment);

}  // namespace hive::cli
