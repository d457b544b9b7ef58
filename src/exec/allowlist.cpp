#include "exec/allowlist.h"

#include <map>

#include <unistd.h>

#include "base/strings.h"
#include "base/utf8.h"
#include "config/pattern.h"
#include "exec/executable.h"

namespace hive::exec {

namespace {

constexpr size_t max_arguments = 4096;

struct Entry {
  std::shared_ptr<const CommandProfile> profile;
  std::optional<config::Pattern> pattern;  // none: no arguments
  std::string path;                        // empty: not found at load
};

bool is_separator(char32_t c) {
  return c <= 0x20 || (c >= 0x7f && c <= 0xa0) || c == 0x1680 || (c >= 0x2000 && c <= 0x200f) ||
         (c >= 0x2028 && c <= 0x202f) || c == 0x205f || (c >= 0x2060 && c <= 0x2069) || c == 0x3000 || c == 0xfeff;
}

// Why the boundaries of this element would be lost in the joined text, or an empty view.
std::string_view ambiguity_of(std::string_view element) {
  if (element.empty()) return "is empty";
  while (!element.empty()) {
    utf8::Decoded decoded = utf8::decode_first(element);
    if (!decoded.valid) return "is not valid UTF-8";
    if (is_separator(decoded.code_point)) return "contains white space or control characters";
    element.remove_prefix(decoded.size_bytes);
  }
  return {};
}

Result<Entry> compile_entry(const config::AllowedCommand& command) {
  TRY(check_command_name(command.name));
  if (command.timeout <= std::chrono::milliseconds(0)) {
    return fail(ErrorCode::invalid_argument, "timeout_seconds must be positive");
  }
  Entry entry;
  if (!command.args_regex.empty()) {
    entry.pattern = TRY_CONTEXT("args_regex: invalid regex pattern in allowlist config",
                                config::Pattern::compile(command.args_regex));
  }
  auto profile = std::make_shared<CommandProfile>();
  profile->name = command.name;
  profile->timeout = command.timeout;
  profile->max_output_bytes = command.max_output_bytes;
  Account account = current_account();
  if (!command.user.empty()) {
    Account wanted = TRY_CONTEXT("user", find_account(command.user));
    if (wanted.credentials.uid != account.credentials.uid) {
      if (::geteuid() != 0) {
        return fail(ErrorCode::permission_denied,
                    "user: running as {} needs an agent that runs as root; remove \"user\" or start the agent as root",
                    quote(command.user));
      }
      profile->run_as = wanted.credentials;
    }
    account = std::move(wanted);
  }
  profile->environment = TRY_CONTEXT("env", build_environment(account, command.env));
  entry.profile = std::move(profile);
  return entry;
}

}  // namespace

struct Allowlist::State {
  std::vector<Entry> entries;
  std::map<std::string, size_t, std::less<>> by_name;
  std::vector<std::string> warnings;

  // The entry that decides, or why there is none that admits the call.
  [[nodiscard]] std::expected<const Entry*, Refusal> find(std::string_view name,
                                                          std::span<const std::string> args) const;
};

Allowlist::Allowlist(std::unique_ptr<State> state) : state_(std::move(state)) {}
Allowlist::Allowlist(Allowlist&&) noexcept = default;
Allowlist& Allowlist::operator=(Allowlist&&) noexcept = default;
Allowlist::~Allowlist() = default;

Result<Allowlist> Allowlist::compile(std::span<const config::AllowedCommand> commands) {
  auto state = std::make_unique<State>();
  std::string problems;
  for (size_t i = 0; i < commands.size(); ++i) {
    const config::AllowedCommand& command = commands[i];
    std::string where = fmt::format("allowed_commands[{}] ({})", i, quote(command.name));
    auto entry = compile_entry(command);
    if (!entry) {
      if (!problems.empty()) problems += '\n';
      problems += where + ": " + entry.error().message;
      continue;
    }
    auto [first, inserted] = state->by_name.emplace(command.name, state->entries.size());
    if (!inserted) {
      state->warnings.push_back(where +
                                ": never consulted, an earlier entry has the same name; join both patterns into one");
    }
    auto path = resolve_executable(command.name);
    if (path) {
      entry->path = *std::move(path);
    } else if (inserted) {
      state->warnings.push_back(where + ": " + path.error().message + "; calls of it will fail");
    }
    state->entries.push_back(*std::move(entry));
  }
  if (!problems.empty()) return std::unexpected(Error{ErrorCode::invalid_argument, std::move(problems)});
  return Allowlist(std::move(state));
}

std::expected<const Entry*, Refusal> Allowlist::State::find(std::string_view name,
                                                            std::span<const std::string> args) const {
  auto deny = [&](std::string reason, std::string text) {
    return std::unexpected(Refusal{.denied = true, .reason = std::move(reason), .text = std::move(text)});
  };
  // A name from a caller may be anything; only so much of it is repeated.
  std::string shown = quote(utf8::truncate(name, 200));
  auto found = by_name.find(name);
  if (found == by_name.end()) {
    return deny("not_allowlisted", fmt::format("command {} is not in the approved allowlist", shown));
  }
  const Entry& entry = entries[found->second];
  if (!entry.pattern) {
    if (!args.empty()) return deny("arguments_not_allowed", fmt::format("command {} does not allow arguments", shown));
    return &entry;
  }
  auto mismatch = [&](std::string_view detail) {
    return deny("arguments_not_allowed",
                fmt::format("arguments of command {} do not match the approved pattern{}", shown, detail));
  };
  if (args.size() > max_arguments) return mismatch(fmt::format(": more than {} arguments", max_arguments));
  std::string joined;
  for (size_t i = 0; i < args.size(); ++i) {
    if (std::string_view problem = ambiguity_of(args[i]); !problem.empty()) {
      return mismatch(fmt::format(": argument {} {}", i + 1, problem));
    }
    if (i > 0) joined += ' ';
    joined += args[i];
  }
  if (!entry.pattern->admits(joined)) return mismatch("");
  return &entry;
}

std::optional<Refusal> Allowlist::refusal_of(std::string_view name, std::span<const std::string> args) const {
  auto entry = state_->find(name, args);
  if (entry) return std::nullopt;
  return entry.error();
}

std::expected<ApprovedCommand, Refusal> Allowlist::check(std::string_view name,
                                                         std::span<const std::string> args) const {
  auto entry = state_->find(name, args);
  if (!entry) return std::unexpected(std::move(entry).error());
  ApprovedCommand command{.path = (*entry)->path, .args = {args.begin(), args.end()}, .profile = (*entry)->profile};
  if (command.path.empty()) {
    // It may have been installed since the agent started.
    auto path = resolve_executable(name);
    if (!path) {
      return std::unexpected(Refusal{
          .denied = false, .reason = "not_installed", .text = "failed to resolve command: " + path.error().message});
    }
    command.path = *std::move(path);
  }
  return command;
}

std::span<const std::string> Allowlist::warnings() const {
  return state_->warnings;
}

}  // namespace hive::exec
