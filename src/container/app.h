#pragma once

#include <string>
#include <vector>

#include "cli/output.h"
#include "container/layout.h"

namespace hive::container {

/// How `hive-container` ends; scripts branch on these, and --help lists them. `run` ends as its command does.
enum class ExitCode : int {
  success = 0,
  error = 1,
  usage = 2,
  refused = 3,      ///< hive-priv or the check of the root said no; nothing runs
  not_found = 4,    ///< there is no such container, or it does not run
  unreachable = 5,  ///< hive-priv does not answer
  cancelled = 130,  ///< the question was answered with no, or Ctrl-C
};

/// The program `hive-container`: parses the words behind its name, runs the command, returns the exit code.
int run(std::vector<std::string> words, const Layout& layout, cli::Output& output);

}  // namespace hive::container
