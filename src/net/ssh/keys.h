#pragma once

#include "base/result.h"
#include "crypto/ssh_key.h"
#include "net/ssh/session.h"

namespace hive::net::ssh {

/// Keys between our own types and those of libssh.
Result<crypto::PublicKey> to_public_key(ssh_key_struct* key);
Result<KeyHandle> to_libssh_key(const crypto::PrivateKey& key);

}  // namespace hive::net::ssh
