#pragma once

#include <optional>
#include <string>

#include "base/result.h"

namespace hive::cli {

/// One named way to reach a gateway.
struct Profile {
  std::string url;
  std::string token;
  std::string token_file;           ///< absolute
  std::string ca_certificate_path;  ///< absolute
};

/// Reads profile `name` from the JSON file {"profiles": {NAME: {"url", "token" | "token_file", "cacert"}}}. nullopt
/// when the file does not exist or has no such profile and `must_exist` is not set. The file must be readable by its
/// owner alone. Relative paths in it start at its folder, "~/" at `home`. Errors name file and field.
Result<std::optional<Profile>> load_profile(const std::string& path, const std::string& name, bool must_exist,
                                            const std::string& home);

}  // namespace hive::cli
