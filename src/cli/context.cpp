#include "cli/context.h"

#include "base/strings.h"
#include "cli/interruption.h"

namespace hive::cli {

namespace {

std::expected<Connection, Failure> connection_for(const Context& context) {
  auto connection = resolve_connection(context.options, context.environment);
  if (!connection) return std::unexpected(Failure{ExitCode::usage, connection.error().message});
  for (const std::string& warning : connection->warnings)
    context.output.note("warning: " + warning);
  return *std::move(connection);
}

}  // namespace

std::expected<GatewayClient, Failure> Context::gateway() {
  auto connection = connection_for(*this);
  if (!connection) return std::unexpected(connection.error());
  if (connection->token.empty()) {
    return std::unexpected(
        Failure{ExitCode::not_authenticated, "no token: set MYRMEX_TOKEN, or use --token-file FILE or a profile in " +
                                                 escape_for_terminal(profile_file_path(environment))});
  }
  return GatewayClient(*std::move(connection), options.timeout.value_or(default_timeout), cancel_fd);
}

std::expected<GatewayClient, Failure> Context::gateway_without_token() {
  auto connection = connection_for(*this);
  if (!connection) return std::unexpected(connection.error());
  connection->token.clear();
  return GatewayClient(*std::move(connection), options.timeout.value_or(default_timeout), cancel_fd);
}

ExitCode Context::fail_with(const Failure& failure) {
  output.note("myrmex: " + failure.message);
  return failure.code;
}

std::function<void()> interruptible(Context& context, int& exit_code, std::function<ExitCode(Context&)> command) {
  return [&context, &exit_code, command = std::move(command)] {
    Interruption interruption;
    context.cancel_fd = interruption.fd();
    exit_code = static_cast<int>(command(context));
    context.cancel_fd = -1;
  };
}

}  // namespace hive::cli
