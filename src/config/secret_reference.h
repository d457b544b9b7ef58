#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace hive::config {

/// Where references are looked up; tests and fuzzers put their own in place.
struct SecretSources {
  std::function<std::optional<std::string>(const std::string& name)> environment;
  /// Reads a small file that others cannot read.
  std::function<Result<std::string>(const std::string& path)> file;
  std::string agenix_folder = "/run/agenix";
  /// Reads one field of a secret in Vault; empty where the program cannot. May block for seconds.
  std::function<Result<std::string>(const std::string& path, const std::string& field)> vault = {};

  /// The process environment and the file system, without Vault.
  static const SecretSources& system();
};

/// Whether a text is meant as a reference: env:NAME, ${NAME}, file:/path, agenix:NAME, vault:PATH#FIELD.
bool is_secret_reference(std::string_view text);

/// What a reference stands for, without surrounding white space. Failure names the reference, never a value; an empty
/// value is a failure.
Result<std::string> resolve_secret(std::string_view reference, const SecretSources& sources);

}  // namespace hive::config
