#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace hive::exec {

/// Where bare command names are looked up, for us and for what we start. Never the agent's own PATH: that would let
/// whoever starts the agent decide which program an allowlist entry means.
inline constexpr std::string_view fixed_path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// The absolute path of the program that `name` means: an absolute path stands for itself, a bare word is looked up on
/// `search_path`. Failure: invalid_argument for a relative path with a slash or an empty name, not_found when there is
/// no executable file.
Result<std::string> resolve_executable(std::string_view name, std::string_view search_path = fixed_path);

/// Whether `name` has a form that can ever be resolved: a bare word or an absolute path. The message says why not.
Result<void> check_command_name(std::string_view name);

}  // namespace hive::exec
