#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/agent_config.h"
#include "config/finding.h"

namespace hive::config {

/// What one allowlist entry means on this machine.
struct CommandReview {
  std::string executable;             ///< absolute path; empty: not found
  std::string admits;                 ///< in words
  std::vector<std::string> examples;  ///< argument lines that are admitted; all of them when `lists_all`
  bool lists_all = false;
  std::vector<Finding> findings;
};

/// Reviews an entry that the loader accepted. `earlier` are the entries before it. Looks at the file system and the
/// user database.
CommandReview review_command(const AllowedCommand& command, std::span<const AllowedCommand> earlier,
                             std::string_view search_path);

}  // namespace hive::config
