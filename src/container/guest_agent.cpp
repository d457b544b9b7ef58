#include "container/guest_agent.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/strings.h"
#include "container/names.h"
#include "container/program.h"
#include "priv/beneath.h"
#include "protocol/json.h"

namespace hive::container {

namespace {

namespace fs = std::filesystem;

/// A program of ours that runs inside, and its unit.
struct GuestProgram {
  std::string_view name;

  [[nodiscard]] std::string path() const { return fmt::format("/usr/bin/{}", name); }
  [[nodiscard]] std::string unit() const { return fmt::format("{}.service", name); }
  [[nodiscard]] std::string unit_path() const { return fmt::format("/usr/lib/systemd/system/{}.service", name); }
};
constexpr GuestProgram agent_program{"myrmex-agent"};
constexpr GuestProgram forwarder_program{"hive-journal-forwarder"};
constexpr size_t max_config_bytes = size_t{1} << 20;
constexpr std::string_view key_folder_name = "myrmex-agent";
constexpr std::string_view key_name = "id_ed25519";

Result<void> copy_into(const std::string& root, const std::string& path) {
  std::error_code error;
  fs::create_directories(fs::path(root + path).parent_path(), error);
  // A link in the template's place for the file would be written through.
  if (!error) fs::remove(root + path, error);
  // Follows links on our side: the library itself, under the name that programs ask for.
  if (!error) fs::copy_file(path, root + path, error);
  if (error) return std::unexpected(system_error(error.value(), root + path));
  return {};
}

/// The libraries of a program that a root has not, brought from this host.
Result<void> bring_libraries(const GuestProgram& program, const std::string& root) {
  const std::string text = TRY(output_of({"ldd", program.path()}));
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

Result<void> install_program(const GuestProgram& program, const std::string& root) {
  for (const std::string& file : {program.path(), program.unit_path()}) {
    if (::access(file.c_str(), F_OK) != 0) {
      return fail(ErrorCode::not_found, "{} is not on this host; install {} first", file, program.name);
    }
    TRY(copy_into(root, file));
  }
  TRY(bring_libraries(program, root));
  auto version = output_of({"chroot", root, program.path(), "--version"});
  if (!version) {
    return fail(ErrorCode::invalid_argument,
                "the root cannot run this host's {}; use a root of the same or a later release", program.name);
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

std::string forwarder_drop_in(std::string_view agent) {
  return fmt::format(
      "[Unit]\nRequiresMountsFor=/agents/{0}/state\n\n"
      "[Service]\nUser={0}\nGroup={0}\nReadWritePaths=/agents/{0}/state\n",
      agent);
}

Result<void> enable_unit(const GuestProgram& program, const std::string& drop_in_text, const std::string& root) {
  const std::string folder = fmt::format("{}/etc/systemd/system/{}.d", root, program.unit());
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) return std::unexpected(system_error(error.value(), folder));
  TRY(write_file_atomically(folder + "/50-container.conf", drop_in_text, 0644));
  return must_run({"chroot", root, "systemctl", "--quiet", "enable", program.unit()});
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

Result<std::string> enrol(const HiveAgent& agent, const Record& record, const Layout& layout) {
  // Before the join token is used.
  const KeyFolder keys = TRY(KeyFolder::open(record, layout));
  const std::string staging = layout.state() + "/enrol." + record.name;
  TRY(must_run({"rm", "-rf", "--one-file-system", "--", staging}));
  TRY(make_private_folder(staging));
  auto made = [&]() -> Result<std::string> {
    const std::string key = staging + "/" + std::string(key_name);
    std::string config = TRY(bootstrap(agent, key, staging + "/agent_config.json"));
    for (std::string_view suffix : {"", ".pub"}) {
      const std::string text = TRY(read_file(key + std::string(suffix), max_config_bytes));
      TRY(keys.add(std::string(key_name) + std::string(suffix), text));
    }
    return config;
  }();
  // The configuration that counts lies in the template.
  TRY(must_run({"rm", "-rf", "--one-file-system", "--", staging}));
  return made;
}

}  // namespace

Result<KeyFolder> KeyFolder::open(const Record& record, const Layout& layout) {
  const std::string path = layout.agent(agent_of(record.name)) + "/state";
  UniqueFd state(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!state) return std::unexpected(system_error(errno, path));
  KeyFolder keys(record.uid, path + "/" + std::string(key_folder_name));
  keys.folder_ = TRY_CONTEXT(path, priv::make_folder(state.get(), std::string(key_folder_name), 0700));
  if (TRY(priv::exists(keys.folder_.get(), std::string(key_name)))) {
    return fail(ErrorCode::already_exists, "{}/{}: the key of an earlier container; move it away first", keys.path_,
                key_name);
  }
  if (::fchown(keys.folder_.get(), record.uid, record.uid) != 0) {
    return std::unexpected(system_error(errno, keys.path_));
  }
  return keys;
}

Result<void> KeyFolder::add(const std::string& name, std::string_view content) const {
  TRY_CONTEXT(path_, priv::replace_file(folder_.get(), name, content, 0600));
  UniqueFd file = priv::open_beneath(folder_.get(), name.c_str(), O_PATH | O_NOFOLLOW);
  if (!file || ::fchownat(file.get(), "", uid_, uid_, AT_EMPTY_PATH) != 0) {
    return std::unexpected(system_error(errno, path_ + "/" + name));
  }
  return {};
}

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
  TRY(install_program(agent_program, template_root));
  const std::string user(agent_of(record.name));
  TRY(enable_unit(agent_program, drop_in(user), template_root));

  const std::string made = TRY(enrol(agent, record, layout));
  const std::string config =
      TRY(guest_agent_config(made, "/agents/" + user + "/state/myrmex-agent/id_ed25519", profile));
  TRY(make_private_folder(template_root + "/etc/myrmex-agent"));
  if (::chmod((template_root + "/etc/myrmex-agent").c_str(), 0755) != 0) {
    return std::unexpected(system_error(errno, "/etc/myrmex-agent"));
  }
  return write_file_atomically(template_root + "/etc/myrmex-agent/agent_config.json", config, 0644);
}

Result<void> install_forwarder(const Forwarding& forwarding, const Record& record, const std::string& template_root) {
  const std::string user(agent_of(record.name));
  const std::string& endpoint = forwarding.endpoint;
  const bool is_plain =
      std::ranges::all_of(endpoint, [](char c) { return c > ' ' && c < '\x7f' && c != '"' && c != '\\'; });
  if (!is_plain || !(endpoint.starts_with("http://") || endpoint.starts_with("https://"))) {
    return fail(ErrorCode::invalid_argument, "--otlp: {} is not a URL that begins http:// or https://",
                quote(endpoint));
  }
  TRY(install_program(forwarder_program, template_root));
  TRY(enable_unit(forwarder_program, forwarder_drop_in(user), template_root));
  return write_file_atomically(
      template_root + "/etc/hive-journal-forwarder.env",
      fmt::format("ENDPOINT=\"{}\"\nPOSITION=\"/agents/{}/state/journal-position.json\"\n", endpoint, user), 0644);
}

}  // namespace hive::container
