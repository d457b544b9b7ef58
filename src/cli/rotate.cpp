#include "cli/rotate.h"

#include <cerrno>
#include <csignal>
#include <optional>

#include <poll.h>

#include "base/file.h"
#include "base/strings.h"
#include "cli/json_text.h"
#include "cli/new_files.h"
#include "config/agent_config.h"
#include "protocol/json.h"

namespace hive::cli {

namespace {

constexpr std::chrono::milliseconds poll_period{250};

struct Rotation {
  std::string agent;
  std::string key_path;
  std::string old_fingerprint;
  std::string new_fingerprint;
  std::string revocation;  // the gateway's answer
};

std::unexpected<Failure> failed(const Error& error, ExitCode code = ExitCode::error) {
  return std::unexpected(Failure{code, error.message});
}

/// Whether the process is an agent: a signal to another one could end it.
Result<void> check_agent_process(std::int64_t pid) {
  Result<std::string> name = read_file(fmt::format("/proc/{}/comm", pid), 64);
  if (!name) return fail(ErrorCode::not_found, "--agent-pid: there is no process {}", pid);
  if (trim(*name) == "myrmex-agent") return {};
  return fail(ErrorCode::invalid_argument, "--agent-pid: process {} is {} and not myrmex-agent", pid,
              quote(trim(*name)));
}

/// Waits a moment; false after Ctrl-C.
bool pause(const Context& context) {
  pollfd cancelled{context.cancel_fd, POLLIN, 0};
  int count = ::poll(&cancelled, context.cancel_fd < 0 ? 0 : 1, static_cast<int>(poll_period.count()));
  return count <= 0;
}

template <class Condition>
std::expected<AgentConnection, Failure> wait_for(Context& context, const GatewayClient& gateway,
                                                 const RotateOptions& options, const std::string& agent,
                                                 std::string_view what, Condition condition) {
  SteadyTime deadline = context.clock->steady_now() + options.patience;
  std::optional<Failure> last;
  while (true) {
    auto connection = connection_of(gateway, agent);
    if (connection && condition(*connection)) return connection;
    // A gateway that restarts is waited for like an agent that does.
    if (!connection && connection.error().code != ExitCode::unreachable) return connection;
    if (!connection) last = connection.error();
    if (!pause(context)) return std::unexpected(Failure{ExitCode::interrupted, "interrupted: " + std::string(what)});
    if (context.clock->steady_now() < deadline) continue;
    return std::unexpected(Failure{ExitCode::unreachable, fmt::format("{} after {} s{}", what, options.patience.count(),
                                                                      last ? ": " + last->message : "")});
  }
}

std::expected<void, Failure> tell_agent(Context& context, const RotateOptions& options) {
  if (options.agent_pid == 0) {
    context.output.note("now tell the agent: systemctl reload myrmex-agent (or send it SIGHUP); waiting for it");
    return {};
  }
  // Again: the process may have ended meanwhile, and its number may be another's.
  if (auto checked = check_agent_process(options.agent_pid); !checked) return failed(checked.error());
  if (::kill(static_cast<pid_t>(options.agent_pid), SIGHUP) != 0) {
    return failed(system_error(errno, fmt::format("signal to process {}", options.agent_pid)));
  }
  return {};
}

std::expected<void, Failure> put_in_place(const std::string& key_path, const crypto::PrivateKey& key) {
  if (auto replaced = replace_keeping_old(key_path, key.to_openssh()); !replaced) return failed(replaced.error());
  // Only for people, so its absence is no fault.
  std::string public_path = key_path + ".pub";
  if (read_file(public_path, 16384)) {
    if (auto written = write_file_atomically(public_path, key.public_key().to_line() + "\n", 0644); !written) {
      return failed(written.error());
    }
  }
  return {};
}

std::expected<void, Failure> finish(Context& context, const GatewayClient& gateway, const RotateOptions& options,
                                    Rotation& rotation) {
  auto connected = wait_for(
      context, gateway, options, rotation.agent,
      fmt::format("the agent has not connected with its new key; both keys are enrolled, the old one is in {}.old",
                  rotation.key_path),
      [&](const AgentConnection& now) { return now.online && now.key_fingerprint == rotation.new_fingerprint; });
  if (!connected) return std::unexpected(connected.error());
  context.output.note("the agent is connected with its new key");
  if (!options.revoke_old) return {};
  auto drained = wait_for(context, gateway, options, rotation.agent,
                          "the old connection still runs calls; the old key is not revoked: try again later with "
                          "`myrmex agents revoke " +
                              rotation.agent + " --key " + rotation.old_fingerprint + "`",
                          [&](const AgentConnection& now) {
                            return now.draining_sessions == 0 && now.key_fingerprint == rotation.new_fingerprint;
                          });
  if (!drained) return std::unexpected(drained.error());
  auto revoked = revoke_agent(gateway, rotation.agent, rotation.old_fingerprint);
  if (!revoked) return std::unexpected(revoked.error());
  rotation.revocation = *std::move(revoked);
  context.output.note("the old key is revoked: " + rotation.old_fingerprint);
  return {};
}

std::expected<Rotation, Failure> rotate(Context& context, const RotateOptions& options) {
  auto gateway = context.gateway();
  if (!gateway) return std::unexpected(gateway.error());
  Result<config::AgentConfig> config = config::load_agent_config(options.config_path);
  if (!config) return failed(config.error());
  if (!options.agent.empty() && options.agent != config->agent_id) {
    return std::unexpected(
        Failure{ExitCode::usage, fmt::format("--agent-id: {} is the configuration of agent {}",
                                             escape_for_terminal(options.config_path), config->agent_id)});
  }
  if (config->private_key_path.empty()) {
    return std::unexpected(
        Failure{ExitCode::usage,
                fmt::format("{}: the key comes from private_key and not from a file: enrol a new one with `myrmex "
                            "enroll`, put it in that place, send the agent SIGHUP, and revoke the old one",
                            escape_for_terminal(options.config_path))});
  }
  Result<crypto::PrivateKey> old_key = crypto::PrivateKey::load(config->private_key_path);
  if (!old_key) return failed(old_key.error());
  if (options.agent_pid != 0) {
    if (auto checked = check_agent_process(options.agent_pid); !checked)
      return failed(checked.error(), ExitCode::usage);
  }
  auto join_token = given_join_token(options.join_token, context.environment);
  if (!join_token) return std::unexpected(join_token.error());
  if (!*join_token) {
    auto minted = mint_join_token(*gateway, config->agent_id, std::nullopt);
    if (!minted) return std::unexpected(minted.error());
    *join_token = minted->token;
  }
  Result<crypto::PrivateKey> key = crypto::PrivateKey::generate(config->agent_id);
  if (!key) return failed(key.error());
  Rotation rotation{config->agent_id, config->private_key_path, old_key->public_key().fingerprint(),
                    key->public_key().fingerprint(), ""};
  auto enrolled = enroll_key(*gateway, **join_token, rotation.agent, key->public_key());
  if (!enrolled) return std::unexpected(enrolled.error());
  context.output.note("new key enrolled: " + rotation.new_fingerprint);
  if (auto placed = put_in_place(rotation.key_path, *key); !placed) {
    return std::unexpected(Failure{
        placed.error().code,
        fmt::format("{}; the new key is enrolled, but the agent does not have it: `myrmex agents revoke {} --key "
                    "{}` takes it back",
                    escape_for_terminal(placed.error().message), rotation.agent, rotation.new_fingerprint)});
  }
  context.output.note(fmt::format("in place: {0} (the old one is {0}.old)", escape_for_terminal(rotation.key_path)));
  if (auto told = tell_agent(context, options); !told) return std::unexpected(told.error());
  if (auto finished = finish(context, *gateway, options, rotation); !finished) {
    return std::unexpected(finished.error());
  }
  return rotation;
}

std::string result_json(const Rotation& rotation) {
  std::string out = "{\"agent_id\":" + json::encode_string(rotation.agent) + ",\"new_key_enrolled\":true";
  out += ",\"fingerprint\":" + json::encode_string(rotation.new_fingerprint);
  out += ",\"old_fingerprint\":" + json::encode_string(rotation.old_fingerprint);
  out += rotation.revocation.empty() ? ",\"revoked\":false"
                                     : ",\"revoked\":true,\"revocation\":" + std::string(trim(rotation.revocation));
  return pretty_json(out + "}");
}

}  // namespace

ExitCode run_rotate(Context& context, const RotateOptions& options) {
  auto rotation = rotate(context, options);
  if (!rotation) return context.fail_with(rotation.error());
  if (context.format.json) {
    context.output.write(result_json(*rotation));
    return ExitCode::success;
  }
  std::string text = fmt::format("Agent {} has the key {} now.\n", rotation->agent, rotation->new_fingerprint);
  if (!options.revoke_old) {
    text += fmt::format("The old one still counts. When it is not needed:\n  myrmex agents revoke {} --key {}\n",
                        rotation->agent, rotation->old_fingerprint);
  }
  context.output.write(text);
  return ExitCode::success;
}

}  // namespace hive::cli
