#pragma once

#include <expected>
#include <functional>
#include <string>

#include "base/clock.h"
#include "cli/exit_code.h"
#include "cli/gateway_client.h"
#include "cli/output.h"
#include "cli/settings.h"

namespace hive::cli {

/// What every command works with.
struct Context {
  const Environment& environment;
  Output& output;
  GlobalOptions options;
  OutputOptions format;
  int cancel_fd = -1;  ///< readable after Ctrl-C
  const Clock* clock = &system_clock();

  /// The gateway that options, environment and profile name; prints the warnings that come with them. A token must be
  /// there.
  [[nodiscard]] std::expected<GatewayClient, Failure> gateway();

  /// The same for what needs no token, which is then not sent either.
  [[nodiscard]] std::expected<GatewayClient, Failure> gateway_without_token();

  /// Prints why a command ends and returns its exit code.
  ExitCode fail_with(const Failure& failure);
};

/// The callback of a command that talks to the gateway: Ctrl-C ends it in an orderly way, and how it ended goes to
/// `exit_code`. Both references must outlive the callback.
std::function<void()> interruptible(Context& context, int& exit_code, std::function<ExitCode(Context&)> command);

inline constexpr std::chrono::milliseconds default_timeout = std::chrono::seconds(45);

}  // namespace hive::cli
