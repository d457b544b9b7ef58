#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "crypto/ssh_key.h"

/// The known_hosts file of OpenSSH, as sshd(8) section SSH_KNOWN_HOSTS FILE FORMAT describes it. Pure functions on the
/// file's text.
namespace hive::crypto {

/// What a known_hosts file says about one address.
enum class HostKeyVerdict {
  unknown,  ///< the file has no key for the address
  known,    ///< exactly this key stands there
  changed,  ///< another key stands there: an attack, or the host was rebuilt
  revoked,  ///< the key is marked @revoked
};

/// The keys found for one address.
struct KnownHost {
  std::vector<PublicKey> keys;             ///< each with the comment of its line
  std::vector<size_t> line_numbers;        ///< of `keys`, for messages
  std::vector<PublicKey> revoked;          ///< keys marked @revoked for the address
  std::vector<RefusedLine> unreadable;     ///< lines of the whole file that cannot be understood; they match nothing
  bool has_certificate_authority = false;  ///< an @cert-authority line names the address; it is not used

  /// Judges the key that the host has shown.
  [[nodiscard]] HostKeyVerdict judge(const PublicKey& key) const;
};

/// Finds the keys of `host`, a name or an address as the user gave it, compared without regard to case. A port other
/// than 22 must be named in the line: "[host]:port".
KnownHost lookup_known_host(std::string_view text, std::string_view host, std::uint16_t port);

/// A line for the file, without newline. Refuses a host that would be read as a pattern or as several fields.
Result<std::string> format_known_host(std::string_view host, std::uint16_t port, const PublicKey& key);

}  // namespace hive::crypto
