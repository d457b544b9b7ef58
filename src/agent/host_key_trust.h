#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "config/agent_config.h"
#include "crypto/ssh_key.h"

namespace hive::agent {

/// Decides whether a gateway is the right one by its host key: pinned in the configuration, or trusted on first use and
/// remembered per address in a file of OpenSSH's known_hosts format.
///
/// A line that holds only a key, as agents of the Go product wrote it, counts for every address that has no line of its
/// own.
class HostKeyTrust {
 public:
  /// Fails when the pin cannot be used.
  static Result<HostKeyTrust> create(const config::AgentConfig& config);

  /// Success when the gateway may be trusted. On first use this writes the file; when that fails, or when the file
  /// cannot be understood, the gateway is refused. Reads and writes a small file, so it may block for a moment.
  [[nodiscard]] Result<void> verify(const config::GatewayAddress& gateway, const crypto::PublicKey& key) const;

 private:
  HostKeyTrust() = default;
  [[nodiscard]] Result<void> verify_against_file(const config::GatewayAddress& gateway,
                                                 const crypto::PublicKey& key) const;
  [[nodiscard]] Result<void> remember(const config::GatewayAddress& gateway, const crypto::PublicKey& key,
                                      std::string text) const;

  std::optional<crypto::PublicKey> pin_;
  std::string config_path_;
  std::string path_;
};

}  // namespace hive::agent
