#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "crypto/ssh_key.h"

/// Signatures of OpenSSH's PROTOCOL.sshsig, which stock `ssh-keygen -Y verify` checks. Ed25519 and SHA-512 only.
namespace hive::crypto {

/// The signature as bytes. `name_space` keeps signatures made for one purpose from being used for another; not empty.
std::vector<std::uint8_t> sshsig_sign(std::string_view message, std::string_view name_space, const PrivateKey& key);

/// The text form: "-----BEGIN SSH SIGNATURE-----" and so on.
std::string sshsig_armor(std::span<const std::uint8_t> signature);
Result<std::vector<std::uint8_t>> sshsig_dearmor(std::string_view text);

/// Whether `key` made this signature of `message` for this purpose.
Result<void> sshsig_verify(std::string_view message, std::string_view name_space,
                           std::span<const std::uint8_t> signature, const PublicKey& key);

}  // namespace hive::crypto
