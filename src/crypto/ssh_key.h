#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace hive::crypto {

/// An SSH public key of any type that can stand in a key file; only Ed25519 keys are accepted for use.
class PublicKey {
 public:
  /// From the wire encoding (RFC 4253 section 6.6, RFC 8709).
  static Result<PublicKey> from_blob(std::span<const std::uint8_t> blob);
  /// From "ssh-ed25519 AAAA... comment"; the comment may be absent.
  static Result<PublicKey> from_line(std::string_view line);
  static PublicKey from_ed25519(const std::array<std::uint8_t, 32>& raw, std::string comment = {});

  [[nodiscard]] const std::string& type() const { return type_; }
  [[nodiscard]] bool is_ed25519() const { return type_ == "ssh-ed25519"; }
  [[nodiscard]] std::span<const std::uint8_t> blob() const { return blob_; }
  [[nodiscard]] const std::string& comment() const { return comment_; }
  /// The 32 raw bytes; only for Ed25519 keys.
  [[nodiscard]] std::array<std::uint8_t, 32> ed25519() const;
  /// "SHA256:..." as ssh-keygen -l prints it.
  [[nodiscard]] std::string fingerprint() const;
  /// "type base64 comment", without newline.
  [[nodiscard]] std::string to_line() const;
  [[nodiscard]] bool verify(std::span<const std::uint8_t> message, std::span<const std::uint8_t> signature) const;

  /// Compares the keys, not the comments.
  bool operator==(const PublicKey& other) const { return blob_ == other.blob_; }

 private:
  std::string type_;
  std::vector<std::uint8_t> blob_;
  std::string comment_;
};

/// An Ed25519 private key. The secret is wiped on destruction. Thread-safe once made.
class PrivateKey {
 public:
  static Result<PrivateKey> generate(std::string comment);
  /// From the text of an unencrypted OpenSSH key file (PROTOCOL.key). A key of another type, an encrypted key and a
  /// damaged file each have their own message.
  static Result<PrivateKey> from_openssh(std::string_view text);
  /// Reads a file that only its owner can read.
  static Result<PrivateKey> load(const std::string& path);

  PrivateKey(PrivateKey&&) noexcept;
  PrivateKey& operator=(PrivateKey&&) noexcept;
  PrivateKey(const PrivateKey&);
  PrivateKey& operator=(const PrivateKey&);
  ~PrivateKey();

  [[nodiscard]] const PublicKey& public_key() const { return public_key_; }
  /// The text of an OpenSSH key file.
  [[nodiscard]] std::string to_openssh() const;
  [[nodiscard]] std::array<std::uint8_t, 64> sign(std::span<const std::uint8_t> message) const;

 private:
  PrivateKey();
  std::array<std::uint8_t, 32> seed_{};
  PublicKey public_key_;
  std::shared_ptr<void> handle_;  // EVP_PKEY, made once
};

/// One line of an authorized_keys file.
struct AuthorizedKey {
  size_t line_number = 0;
  PublicKey key;                                    ///< its comment is the agent id
  std::vector<std::string> from_patterns;           ///< of the option from="..."; empty when any address may connect
  std::optional<std::int64_t> expiry_unix_seconds;  ///< of expiry-time="..."
};

/// A line that cannot be honoured, and why; such a line authorises nobody.
struct RefusedLine {
  size_t line_number = 0;
  std::string reason;
};

struct AuthorizedKeys {
  std::vector<AuthorizedKey> keys;
  std::vector<RefusedLine> refused;
};

/// Parses a whole authorized_keys file in the grammar of sshd(8). Options are honoured or the line is refused: from=,
/// expiry-time=, restrict and the no-* options (which ask for less than we give) are honoured, everything else refuses.
AuthorizedKeys parse_authorized_keys(std::string_view text);

/// Whether an address matches OpenSSH's pattern list (wildcards, negation with "!", CIDR). A mapped IPv4 address
/// matches as IPv4.
bool address_matches(std::span<const std::string> patterns, std::string_view address);

}  // namespace hive::crypto
