#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace hive::container {

/// Runs a program to its end with our standard streams, a short fixed environment and the environment variables named
/// in `keep`; never a shell. `argv[0]` is looked up in the system's folders unless it is a path. Returns its exit code;
/// one that a signal ended counts as 128 + signal. Blocks.
Result<int> run_program(const std::vector<std::string>& argv, const std::vector<std::string>& keep = {});

/// The same, where anything but exit code 0 is a failure. What it prints goes to standard error: standard output is for
/// the answer of hive-container itself.
Result<void> must_run(const std::vector<std::string>& argv, const std::vector<std::string>& keep = {});

/// The same with standard output collected, at most `max_bytes` of it; more is a failure.
Result<std::string> output_of(const std::vector<std::string>& argv, size_t max_bytes = size_t{4} << 20);

/// Becomes the program; returns only when that fails. `argv[0]` is an absolute path. The environment stays.
Error become_program(const std::vector<std::string>& argv);

}  // namespace hive::container
