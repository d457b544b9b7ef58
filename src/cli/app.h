#pragma once

#include <string>
#include <vector>

#include "cli/output.h"
#include "cli/settings.h"

namespace hive::cli {

/// The program `myrmex`: parses the words after its name, runs the command and returns the exit code (ExitCode).
int run(std::vector<std::string> words, const Environment& environment, Output& output);

}  // namespace hive::cli
