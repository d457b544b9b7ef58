#pragma once

#include <chrono>
#include <cstddef>
#include <expected>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "config/agent_config.h"
#include "exec/environment.h"

/// Gate 5 (DESIGN section 2): what this agent runs at all.
namespace hive::exec {

/// How an approved command is to be run; shared by all calls of one allowlist entry.
struct CommandProfile {
  std::string name;
  std::vector<std::string> environment;  ///< complete, as NAME=value
  std::optional<Credentials> run_as;     ///< empty: as the agent
  std::chrono::milliseconds timeout{0};
  std::size_t max_output_bytes = 0;
};

/// A command that passed the allowlist and whose program exists.
struct ApprovedCommand {
  std::string path;               ///< absolute
  std::vector<std::string> args;  ///< without the program's own name
  std::shared_ptr<const CommandProfile> profile;
};

/// Why a command is not run. The texts hold the words by which gateways of the reference tell denial from failure.
struct Refusal {
  bool denied = true;  ///< false: the allowlist admits it, but the program is not there
  std::string reason;  ///< short code for the audit log
  std::string text;    ///< one line for the caller; never shows the pattern
};

/// The allowlist as loaded: patterns compiled, programs resolved, users looked up. Immutable; thread-safe.
class Allowlist {
 public:
  /// Compiles all entries. The error lists every broken entry, one a line. May block (user database, PATH).
  static Result<Allowlist> compile(std::span<const config::AllowedCommand> entries);

  Allowlist(Allowlist&&) noexcept;
  Allowlist& operator=(Allowlist&&) noexcept;
  ~Allowlist();

  /// The first entry with exactly this name decides. `args` are joined with single spaces and the pattern must match
  /// the whole; an element that is empty or holds white space or control characters would make the joined text
  /// ambiguous and is refused.
  [[nodiscard]] std::expected<ApprovedCommand, Refusal> check(std::string_view name,
                                                              std::span<const std::string> args) const;

  /// The same question without looking for the program: nullopt when admitted.
  [[nodiscard]] std::optional<Refusal> refusal_of(std::string_view name, std::span<const std::string> args) const;

  /// What is legal but probably not meant (shadowed entries, programs that are not installed), one line each.
  [[nodiscard]] std::span<const std::string> warnings() const;

 private:
  struct State;
  explicit Allowlist(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace hive::exec
