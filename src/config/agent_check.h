#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace hive::config {

struct SecretSources;

/// How `myrmex-agent --check-config` shows its report.
struct CheckOptions {
  bool colour = false;                     ///< ANSI colours in the text
  const SecretSources* sources = nullptr;  ///< where references are looked up; null: SecretSources::system()
  /// Where bare command names are looked up: the PATH that commands get.
  std::string search_path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
};

/// What an agent configuration means and what is wrong with it.
struct CheckReport {
  std::vector<std::string> errors;    ///< the agent would not start
  std::vector<std::string> warnings;  ///< it would, and probably not as meant
  std::string text;                   ///< for people, one block an entry, with a final newline
  std::string json;                   ///< for programs, with a final newline

  /// 1 when there are errors, else 0.
  [[nodiscard]] int exit_code() const { return errors.empty() ? 0 : 1; }
};

/// Loads the file and the private key as the agent would, and explains what could be understood also when something
/// is wrong. Blocks on the file system and the user database.
CheckReport check_agent_config(const std::string& path, const CheckOptions& options = {});

}  // namespace hive::config
