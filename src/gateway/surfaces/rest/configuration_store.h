#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "gateway/policy/principal.h"

namespace hive::rest {

/// The gateway's configuration file, as the surface reads and replaces it. May block: on the blocking pool only.
/// Thread-safe.
class ConfigurationStore {
 public:
  struct Change {
    std::vector<std::string> changed;           ///< names of fields, never values
    std::vector<std::string> restart_required;  ///< those of them that are read at the start only
    std::string redacted;                       ///< the new file without its secrets
  };
  virtual ~ConfigurationStore() = default;

  /// The file as a JSON object in which placeholders stand for secrets.
  virtual Result<std::string> redacted() = 0;

  /// Puts `text` in the place of the file and in force, all or nothing; placeholders become the secrets that they stand
  /// for. invalid_argument: it is not a valid configuration; every problem has a line of its own. Recorded as `by`'s.
  virtual Result<Change> replace(std::string text, const policy::Principal& by, const std::string& request_id) = 0;
};

}  // namespace hive::rest
