#include "net/ssh/keys.h"

#include <cstring>
#include <string>

#include <libssh/libssh.h>

#include "base/strings.h"

namespace hive::net::ssh {

Result<crypto::PublicKey> to_public_key(ssh_key_struct* key) {
  char* text = nullptr;
  if (key == nullptr || ssh_pki_export_pubkey_base64(key, &text) != SSH_OK) {
    return fail(ErrorCode::invalid_argument, "the key cannot be encoded");
  }
  const std::string base64 = text;
  ssh_string_free_char(text);
  return crypto::PublicKey::from_blob(TRY(from_base64(base64)));
}

Result<KeyHandle> to_libssh_key(const crypto::PrivateKey& key) {
  std::string text = key.to_openssh();
  ssh_key imported = nullptr;
  const int result = ssh_pki_import_privkey_base64(text.c_str(), nullptr, nullptr, nullptr, &imported);
  explicit_bzero(text.data(), text.size());
  if (result != SSH_OK) return fail(ErrorCode::internal, "libssh does not take the private key");
  return KeyHandle(imported);
}

}  // namespace hive::net::ssh
