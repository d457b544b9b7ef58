#pragma once

#include <memory>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "crypto/ssh_key.h"

namespace hive::fleet {

/// The file that says which keys are agents. Read again whenever it changes on disk, so that enrolment and revocation
/// hold from the next handshake on. Thread-safe.
class AuthorizedKeysFile {
 public:
  AuthorizedKeysFile(std::string path, const Clock& clock);
  ~AuthorizedKeysFile();

  /// Whether `user` may connect with `key` from `address`: the key stands in the file, its comment is the user name,
  /// and the line's options admit the address and the time. The error says which of these failed.
  Result<void> authorize(const std::string& user, const crypto::PublicKey& key, const std::string& address);

  /// Reads the file now; for the start and for reloads. Lines that cannot be honoured are logged and authorise nobody.
  Result<void> check();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace hive::fleet
