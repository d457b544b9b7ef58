#pragma once

#include <string>

#include "base/result.h"

namespace hive::cli {

/// Whether somebody sits in front of standard input and can be asked.
bool can_ask();

/// Asks on standard error and reads a line from standard input, a terminal. Without `echo` what is typed is not shown.
/// `cancel_fd`: readable after Ctrl-C. Errors: cancelled after Ctrl-C or at the end of input, resource_exhausted for a
/// line of more than 4096 bytes, io.
Result<std::string> ask_line(const std::string& question, bool echo, int cancel_fd);

}  // namespace hive::cli
