#include "agent/doctor_local.h"

#include <filesystem>
#include <memory>
#include <vector>

#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/strings.h"
#include "crypto/ssh_key.h"
#include "exec/allowlist.h"
#include "exec/executable.h"

namespace hive::agent {

namespace {

constexpr std::string_view unit_name = "myrmex-agent.service";

std::string user_name(uid_t uid) {
  passwd entry{};
  passwd* found = nullptr;
  std::vector<char> buffer(16384);
  if (::getpwuid_r(uid, &entry, buffer.data(), buffer.size(), &found) == 0 && found != nullptr) return entry.pw_name;
  return fmt::format("uid {}", uid);
}

std::string folder_of(const std::string& path) {
  std::string folder = std::filesystem::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

Check ok(std::string name, std::string detail) {
  return {std::move(name), CheckStatus::ok, std::move(detail), ""};
}

Check check_allowlist(const config::AgentConfig& config) {
  auto allowlist = exec::Allowlist::compile(config.allowed_commands);
  if (!allowlist) {
    return {"allowlist", CheckStatus::failed, allowlist.error().message,
            fmt::format("see: myrmex-agent --check-config {}", config.source_path)};
  }
  const size_t count = config.allowed_commands.size();
  if (allowlist->warnings().empty()) return ok("allowlist", fmt::format("{} entries compile", count));
  return {"allowlist", CheckStatus::warning,
          fmt::format("{} entries compile; {}", count, join(allowlist->warnings(), "; ")),
          fmt::format("see: myrmex-agent --check-config {}", config.source_path)};
}

/// What this user may read and write says nothing of what another one may.
Check check_user(const config::AgentConfig& config) {
  const std::string me = user_name(::geteuid());
  struct stat status{};
  if (config.private_key_path.empty() || ::stat(config.private_key_path.c_str(), &status) != 0 ||
      status.st_uid == ::geteuid()) {
    return ok("user", "runs as " + me);
  }
  const std::string owner = user_name(status.st_uid);
  return {
      "user", CheckStatus::warning,
      fmt::format("runs as {}, but the key belongs to {}: what {} may do is not what the agent may do", me, owner, me),
      fmt::format("run: runuser -u {} -- myrmex-agent doctor --config {}", owner, config.source_path)};
}

Check check_key(const config::AgentConfig& config) {
  const bool from_file = config.private_key.empty();
  const std::string where = from_file ? config.private_key_path : "the reference in private_key";
  auto key = from_file ? crypto::PrivateKey::load(config.private_key_path)
                       : crypto::PrivateKey::from_openssh(config.private_key.reveal());
  if (!key) {
    const bool missing = key.error().code == ErrorCode::not_found;
    return {"key", CheckStatus::failed, key.error().message,
            missing ? fmt::format("make one: ssh-keygen -t ed25519 -N \"\" -C {} -f {}", config.agent_id, where)
                    : "the agent needs an Ed25519 key in OpenSSH form without passphrase, readable by its user alone"};
  }
  const crypto::PublicKey& shown = key->public_key();
  std::string detail =
      fmt::format("{} {}, comment {}, from {}", shown.type(), shown.fingerprint(), quote(shown.comment()), where);
  if (shown.comment().empty() || shown.comment() == config.agent_id) return ok("key", detail);
  return {"key", CheckStatus::warning, detail + fmt::format("; agent_id is {}", quote(config.agent_id)),
          fmt::format("its line in the gateway's authorized_keys must end in {}: ssh-keygen -c -C {} -f {}",
                      config.agent_id, config.agent_id, from_file ? config.private_key_path : "KEY")};
}

Check check_host_keys(const config::AgentConfig& config) {
  if (!config.gateway_host_key.empty()) {
    auto pin = crypto::PublicKey::from_line(config.gateway_host_key);
    return ok("host keys", fmt::format("pinned to {}", pin ? pin->fingerprint() : config.gateway_host_key));
  }
  const std::string& path = config.known_host_key_path;
  if (auto text = read_file(path, size_t{1} << 20)) return ok("host keys", "remembered in " + path);
  if (std::error_code error; std::filesystem::exists(path, error)) {
    return {"host keys", CheckStatus::failed, path + " cannot be read",
            fmt::format("make it readable for the agent: chown it to the agent's user and chmod 600 {}", path)};
  }
  const std::string folder = folder_of(path);
  if (::access(folder.c_str(), W_OK | X_OK) == 0) {
    return ok("host keys", fmt::format("none remembered yet; {} can be written at the first connection", path));
  }
  return {"host keys", CheckStatus::failed,
          fmt::format("none remembered yet, and the folder {} cannot be written", folder),
          "set known_host_key_path to a file below the agent's state folder, or pin gateway_host_key"};
}

/// What an entry needs that the unit of packaging/ does not give.
std::vector<std::string> needs_of(const config::AgentConfig& config) {
  std::vector<std::string> needs;
  for (const config::AllowedCommand& command : config.allowed_commands) {
    if (!command.user.empty()) {
      needs.push_back(fmt::format("{} runs as {}, which needs User=root", command.name, command.user));
      continue;
    }
    auto program = exec::resolve_executable(command.name);
    struct stat status{};
    if (program && ::stat(program->c_str(), &status) == 0 && (status.st_mode & (S_ISUID | S_ISGID)) != 0) {
      needs.push_back(
          fmt::format("{} is set-user-ID or set-group-ID, which NoNewPrivileges=yes turns off", command.name));
    }
  }
  return needs;
}

Check check_sandbox(const config::AgentConfig& config, const std::string& unit_folder) {
  const std::filesystem::path unit = std::filesystem::path(unit_folder) / unit_name;
  std::error_code error;
  if (!std::filesystem::exists(unit, error) &&
      !std::filesystem::exists(std::filesystem::path("/usr/lib/systemd/system") / unit_name, error)) {
    return {"sandbox", CheckStatus::skipped, fmt::format("no unit {} is installed here", unit_name), ""};
  }
  const std::vector<std::string> needs = needs_of(config);
  if (needs.empty()) return ok("sandbox", "no entry of the allowlist is known to need more than the unit gives");
  const std::filesystem::path drop_ins = std::filesystem::path(unit_folder) / (std::string(unit_name) + ".d");
  if (std::filesystem::exists(drop_ins, error)) {
    return ok("sandbox", fmt::format("{}; whether the drop-ins in {} give it is for you to see", join(needs, "; "),
                                     drop_ins.string()));
  }
  return {"sandbox", CheckStatus::warning, join(needs, "; "),
          "give it by a drop-in, see packaging/README.md, or take the entry out"};
}

}  // namespace

CheckGroup examine_machine(const DoctorOptions& options, std::optional<config::AgentConfig>& config) {
  CheckGroup group{.title = "This machine", .checks = {}};
  auto loaded = config::load_agent_config(
      options.config_path, options.sources == nullptr ? config::SecretSources::system() : *options.sources);
  if (!loaded) {
    for (std::string_view problem : split(loaded.error().message, '\n')) {
      group.checks.push_back({"config", CheckStatus::failed, std::string(problem), ""});
    }
    group.checks.back().remedy = fmt::format("see: myrmex-agent --check-config {}", options.config_path);
    for (std::string_view name : {"user", "allowlist", "key", "host keys", "sandbox"}) {
      group.checks.push_back({std::string(name), CheckStatus::skipped, "not reached", ""});
    }
    return group;
  }
  config = *std::move(loaded);
  const size_t gateways = config->gateways.size();
  group.checks.push_back(ok("config", fmt::format("{}: agent {}, {} gateway{}", options.config_path, config->agent_id,
                                                  gateways, gateways == 1 ? "" : "s")));
  group.checks.push_back(check_user(*config));
  group.checks.push_back(check_allowlist(*config));
  group.checks.push_back(check_key(*config));
  group.checks.push_back(check_host_keys(*config));
  group.checks.push_back(check_sandbox(*config, options.unit_folder));
  return group;
}

}  // namespace hive::agent
