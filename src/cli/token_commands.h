#pragma once

#include <string>

#include "cli/context.h"

namespace hive::cli {

/// `myrmex token new`: a token at random, its hash for the gateway's configuration and its name in the audit log. With
/// a role, also the entry of "tokens" that makes it known.
ExitCode run_token_new(Context& context, const std::string& role, const std::string& identity);

/// `myrmex token hash`: reads a token from standard input, without showing it where that is a terminal, and prints its
/// hash. Short tokens can be guessed and are refused unless `force`.
ExitCode run_token_hash(Context& context, bool force);

}  // namespace hive::cli
