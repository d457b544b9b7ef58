#pragma once

#include <string>
#include <vector>

#include "cli/context.h"

namespace hive::cli {

struct PolicyTestOptions {
  std::vector<std::string> files;
  std::string config;    ///< decide by this configuration; empty: ask the gateway
  bool verbose = false;  ///< also print what passes
};

/// `myrmex policy test`: holds each case of the files against the gates. Success only if there are cases and all of
/// them are decided as expected.
ExitCode run_policy_test(Context& context, const PolicyTestOptions& options);

}  // namespace hive::cli
