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

  enum class Standing {
    pinned,   ///< the configuration names this key
    known,    ///< remembered from before
    unknown,  ///< nothing is known of the gateway; verify() would trust it from now on
  };
  /// What verify() would decide, without writing. Fails with its words where it would refuse.
  [[nodiscard]] Result<Standing> judge(const config::GatewayAddress& gateway, const crypto::PublicKey& key) const;

  /// Success when the gateway may be trusted. On first use this writes the file; when that fails, or when the file
  /// cannot be understood, the gateway is refused. Reads and writes a small file, so it may block for a moment.
  [[nodiscard]] Result<void> verify(const config::GatewayAddress& gateway, const crypto::PublicKey& key) const;

 private:
  HostKeyTrust() = default;
  /// `text` becomes what the file holds.
  [[nodiscard]] Result<Standing> judge(const config::GatewayAddress& gateway, const crypto::PublicKey& key,
                                       std::string& text) const;
  [[nodiscard]] Result<Standing> judge_by_file(const config::GatewayAddress& gateway, const crypto::PublicKey& key,
                                               std::string& text) const;
  [[nodiscard]] Result<void> remember(const config::GatewayAddress& gateway, const crypto::PublicKey& key,
                                      std::string text) const;

  std::optional<crypto::PublicKey> pin_;
  std::string config_path_;
  std::string path_;
};

}  // namespace hive::agent
