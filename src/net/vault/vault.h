#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "base/result.h"
#include "config/secret.h"
#include "config/secret_reference.h"

/// Secrets in HashiCorp Vault or OpenBao, read by their HTTP API: engines KV version 1 and 2.
namespace hive::net::vault {

/// Where the server is and how it knows us: the variables of the environment that the vault program uses as well.
struct Settings {
  std::string address = "http://127.0.0.1:8200";                 ///< VAULT_ADDR: https, or http to this machine
  config::Secret token;                                          ///< VAULT_TOKEN, or the content of VAULT_TOKEN_FILE
  std::string namespace_name;                                    ///< VAULT_NAMESPACE; empty: none
  std::string ca_certificate_path;                               ///< VAULT_CACERT; empty: the system's store
  std::chrono::milliseconds timeout = std::chrono::seconds(10);  ///< for one answer
};

/// Reads the settings; the message of a failure names the variable. `sources` are asked for variables and files.
Result<Settings> settings_from(const config::SecretSources& sources);

/// Reads secrets, each path once: what was read is kept for the life of the object, which is one load of a
/// configuration. A server that cannot be reached is not asked again. Thread-safe; blocks while it reads.
class Client {
 public:
  explicit Client(Settings settings) : settings_(std::move(settings)) {}

  /// The text in a field of the secret at a path, "secret/data/gateway" for KV version 2, "kv/gateway" for version 1.
  /// Failure names the server and what to do, never a value or the token: permission_denied, not_found, unavailable,
  /// timed_out, corrupt, invalid_argument.
  Result<std::string> read(const std::string& path, const std::string& field);

 private:
  Result<std::string> fetch(const std::string& path);

  const Settings settings_;
  std::mutex mutex_;
  std::map<std::string, Result<std::string>> answers_;  ///< JSON of the secrets by path
  std::optional<Error> unreachable_;
};

/// The given sources with Vault added. Settings are read when the first reference needs them, and paths are read once
/// for the life of the result: make one for each load.
config::SecretSources with_vault(const config::SecretSources& sources);

}  // namespace hive::net::vault
