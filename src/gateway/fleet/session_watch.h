#pragma once

#include <memory>
#include <string>
#include <vector>

#include "gateway/fleet/authorized_keys_file.h"
#include "gateway/fleet/fleet.h"
#include "net/runtime/runtime.h"

namespace hive::fleet {

/// Ends the sessions of agents whose key the authorized_keys file does not admit any more, within a second, however the
/// file was changed: looks at it four times a second on the blocking pool, which costs one stat(2) while nothing
/// changes. Also ends sessions whose key expires, and tells the fleet which agents have a key. A session that registers
/// later is the fleet's to check: its Events::admit must ask the same file.
class SessionWatch {
 public:
  /// All must live as long as the runtime runs. The first look comes with the runtime's start.
  static std::shared_ptr<SessionWatch> create(net::Runtime& runtime, Fleet& fleet, AuthorizedKeysFile& keys);
  virtual ~SessionWatch() = default;

  /// Looks no more. Thread-safe; a look that runs is not waited for.
  virtual void stop() = 0;
};

/// Ends every session whose key is not admitted by what was last read of the file; returns their agents.
std::vector<std::string> end_unauthorized_sessions(Fleet& fleet, AuthorizedKeysFile& keys);

}  // namespace hive::fleet
