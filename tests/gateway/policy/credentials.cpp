#include "gateway/policy/credentials.h"

#include "base/strings.h"
#include "crypto/sha256.h"

namespace hive::policy {

std::string hashed(std::string_view token) {
  return "sha256:" + to_hex(crypto::sha256(token));
}

}  // namespace hive::policy
