#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "crypto/ssh_key.h"

namespace hive::fleet {

/// One line of the file that holds, or should hold, a key.
struct KeyLine {
  std::size_t number = 0;
  std::string agent = {};                   ///< empty for a refused line
  std::string fingerprint = {};             ///< empty for a refused line
  std::vector<std::string> from = {};       ///< addresses that the line admits; empty: any
  std::optional<WallTime> expires_at = {};  ///< of expiry-time=
  std::string refused = {};                 ///< why the line authorises nobody; empty: it does
};

/// The whole file as it is now.
struct KeyListing {
  std::string text;
  std::vector<KeyLine> lines;
};

/// What sessions depend on: equal values admit the same keys from the same addresses.
struct KeyState {
  std::shared_ptr<const void> keys;  ///< what was last read; null: nothing yet
  std::size_t expired = 0;           ///< how many of those keys have expired

  bool operator==(const KeyState&) const = default;
};

/// What became of a key that was to be added.
enum class KeyAddition {
  added,
  present,  ///< it stood there already, for the same agent
};

/// The file that says which keys are agents. Read again whenever it changes on disk, so that enrolment and revocation
/// hold from the next handshake on. Changes are made line by line: every other line keeps its bytes. Thread-safe;
/// everything that reads or writes the file may block.
class AuthorizedKeysFile {
 public:
  AuthorizedKeysFile(std::string path, const Clock& clock);
  ~AuthorizedKeysFile();

  [[nodiscard]] const std::string& path() const;

  /// Whether `user` may connect with `key` from `address`: the key stands in the file, its comment is the user name,
  /// and the line's options admit the address and the time. The error says which of these failed.
  Result<void> authorize(const std::string& user, const crypto::PublicKey& key, const std::string& address);

  /// The same for a key that has authenticated earlier, against what was last read of the file: touches no disk.
  Result<void> authorize_session(const std::string& user, const std::string& fingerprint, const std::string& address);

  /// What authorize_session() goes by now. Cheap, whatever the number of keys.
  [[nodiscard]] KeyState state() const;

  /// Reads the file now; for the start and for reloads. Lines that cannot be honoured are logged and authorise nobody.
  Result<void> check();

  /// Looks whether the file has changed and reads it then. false while it is just being written: an editor may have put
  /// down half of it. A file that is gone counts as empty once it has been missing for a moment.
  Result<bool> refresh();

  /// Appends a line for `agent`, with its id as comment. Fails with already_exists if the key is another agent's or its
  /// line has expired, and with invalid_argument if it is not an Ed25519 key or the id is none.
  Result<KeyAddition> add_key(const std::string& agent, const crypto::PublicKey& key);

  /// Removes every line of the agent, or the line of one of its keys; returns how many went. A line that was refused
  /// only because it repeats a removed key goes as well: it would count from then on.
  Result<std::size_t> remove_agent(const std::string& agent);
  Result<std::size_t> remove_key(const std::string& agent, std::string_view fingerprint);

  Result<KeyListing> list();

  /// The agents that have a key in what was last read of the file, sorted, each once; another object after another
  /// reading. Touches no disk; never null.
  [[nodiscard]] std::shared_ptr<const std::vector<std::string>> agents() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace hive::fleet
