#pragma once

#include <string>

#include "crypto/ssh_key.h"

namespace hive::fleet::test {

/// A fresh Ed25519 key.
inline crypto::PublicKey new_key(const std::string& comment) {
  return crypto::PrivateKey::generate(comment)->public_key();
}

}  // namespace hive::fleet::test
