#include "container/guest_agent.h"

#include <filesystem>
#include <system_error>

#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/strings.h"
#include "container/names.h"
#include "container/program.h"
#include "protocol/json.h"

namespace hive::container {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view program = "/usr/bin/myrmex-agent";
constexpr std::string_view unit = "/usr/lib/systemd/system/myrmex-agent.service";
constexpr size_t max_config_bytes = size_t{1} << 20;

Result<void> copy_into(const std::string& root, const std::string& path) {
  std::error_code error;
  fs::create_directories(fs::path(root + path).parent_path(), error);
  // Follows links on our side: the library itself, under the name that programs ask for.
  if (!error) fs::copy_file(path, root + path, fs::copy_options::overwrite_existing, error);
  if (error) return std::unexpected(system_error(error.value(), root + path));
  return {};
}

/// The libraries of a program that a root has not, brought from this host.
Result<void> bring_libraries(const std::string& root) {
  const std::string text = TRY(output_of({"ldd", std::string(program)}));
  bool any = false;
  for (std::string_view line : split(text, '\n')) {
    size_t arrow = line.find("=> /");
    if (arrow == std::string_view::npos) continue;
    std::string_view path = line.substr(arrow + 3);
    path = path.substr(0, path.find(" ("));
    if (::access((root + std::string(path)).c_str(), F_OK) == 0) continue;
    TRY(copy_into(root, std::string(path)));
    any = true;
  }
  if (any) TRY(must_run({"chroot", root, "ldconfig"}));
  return {};
}

Result<void> install_program(const std::string& root) {
  for (std::string_view file : {program, unit}) {
    if (::access(std::string(file).c_str(), F_OK) != 0) {
      return fail(ErrorCode::not_found, "{} is not on this host; install myrmex-agent first", file);
    }
    TRY(copy_into(root, std::string(file)));
  }
  TRY(bring_libraries(root));
  auto version = output_of({"chroot", root, std::string(program), "--version"});
  if (!version) {
    return fail(ErrorCode::invalid_argument,
                "the root cannot run this host's myrmex-agent; use a root of the same or a later release");
  }
  return {};
}

std::string drop_in(std::string_view agent) {
  return fmt::format(
      "# The agent works as the container's user, in its folders.\n"
      "[Unit]\nRequiresMountsFor=/agents/{0}/state\n\n"
      "[Service]\nUser={0}\nGroup={0}\nConfigurationDirectoryMode=0755\nProtectHome=no\n"
      "ReadWritePaths=/agents/{0} /home/{0}\n",
      agent);
}

Result<void> write_unit(const std::string& root, std::string_view agent) {
  const std::string folder = root + "/etc/systemd/system/myrmex-agent.service.d";
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) return std::unexpected(system_error(error.value(), folder));
  TRY(write_file_atomically(folder + "/50-container.conf", drop_in(agent), 0644));
  return must_run({"chroot", root, "systemctl", "--quiet", "enable", "myrmex-agent.service"});
}

/// Makes and enrols the key; returns the text of the configuration that came with it.
Result<std::string> bootstrap(const HiveAgent& agent, const std::string& key_path, const std::string& config_path) {
  std::vector<std::string> command{"myrmex", "bootstrap",    "--agent-id", agent.id,    "--key-out",
                                   key_path, "--config-out", config_path,  "--no-color"};
  auto add = [&command](const char* option, const std::string& value) {
    if (!value.empty()) command.insert(command.end(), {option, value});
  };
  add("--gateway-addr", agent.gateway);
  add("--url", agent.url);
  add("--cacert", agent.ca_certificate);
  add("--join-token-file", agent.join_token_file);
  TRY(must_run(command, {"MYRMEX_URL", "MYRMEX_CACERT", "MYRMEX_TOKEN", "MYRMEX_JOIN_TOKEN", "MYRMEX_PROFILE",
                         "XDG_CONFIG_HOME"}));
  return read_file(config_path, max_config_bytes);
}

}  // namespace

Result<std::string> guest_agent_config(const std::string& made, const std::string& key_inside,
                                       const std::string& profile) {
  const std::vector<json::Member> members = TRY_CONTEXT("configuration of the agent", json::parse_object(made));
  std::string text;
  auto add = [&text](std::string_view key, std::string_view raw) {
    text += fmt::format("{}  {}: {}", text.empty() ? "{\n" : ",\n", json::encode_string(key), raw);
  };
  for (const json::Member& member : members) {
    if (member.key == "private_key_path") {
      add(member.key, json::encode_string(key_inside));
    } else if (member.key == "known_host_key_path") {
      add(member.key, json::encode_string(key_inside + ".gateway_hostkey"));
    } else if (member.key != "allowed_commands" || profile.empty()) {
      add(member.key, member.value);
    }
  }
  if (!profile.empty()) {
    if (auto checked = json::parse_array(trim(profile)); !checked) {
      return fail(ErrorCode::invalid_argument, "--agent-profile: no JSON array of allowed commands: {}",
                  checked.error().message);
    }
    add("allowed_commands", trim(profile));
  }
  return text + "\n}\n";
}

Result<void> install_agent(const HiveAgent& agent, const Record& record, const std::string& template_root,
                           const Layout& layout) {
  TRY(check_agent_id(agent.id));
  const std::string profile = agent.profile.empty() ? "" : TRY(read_file(agent.profile, max_config_bytes));
  TRY(install_program(template_root));
  const std::string user(agent_of(record.name));
  TRY(write_unit(template_root, user));

  const std::string folder = layout.agent(user) + "/state/myrmex-agent";
  TRY(make_private_folder(folder));
  const std::string key = folder + "/id_ed25519";
  const std::string made_config = folder + "/agent_config.json";
  const std::string made = TRY(bootstrap(agent, key, made_config));
  // The one that counts lies in the template.
  if (::unlink(made_config.c_str()) != 0) return std::unexpected(system_error(errno, made_config));
  const std::string config =
      TRY(guest_agent_config(made, "/agents/" + user + "/state/myrmex-agent/id_ed25519", profile));
  TRY(make_private_folder(template_root + "/etc/myrmex-agent"));
  if (::chmod((template_root + "/etc/myrmex-agent").c_str(), 0755) != 0) {
    return std::unexpected(system_error(errno, "/etc/myrmex-agent"));
  }
  TRY(write_file_atomically(template_root + "/etc/myrmex-agent/agent_config.json", config, 0644));
  for (const std::string& path : {folder, key, key + ".pub"}) {
    if (::lchown(path.c_str(), record.uid, record.uid) != 0) return std::unexpected(system_error(errno, path));
  }
  return {};
}

}  // namespace hive::container
