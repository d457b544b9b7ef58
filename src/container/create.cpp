#include "container/create.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/strings.h"
#include "container/guest_agent.h"
#include "container/names.h"
#include "container/program.h"
#include "container/template_root.h"
#include "priv/ipv4.h"
#include "priv/names.h"

namespace hive::container {

namespace {

// Above what distributions give to people and services, below what nspawn takes for user namespaces.
constexpr uid_t first_uid = 20000;
constexpr uid_t last_uid = 29999;

Result<void> make_folder(const std::string& path, mode_t mode, uid_t owner) {
  if (::mkdir(path.c_str(), mode) != 0 && errno != EEXIST) return std::unexpected(system_error(errno, path));
  struct stat status{};
  if (::lstat(path.c_str(), &status) != 0) return std::unexpected(system_error(errno, path));
  if (!S_ISDIR(status.st_mode)) return fail(ErrorCode::already_exists, "{} is there and no folder", path);
  if (::lchown(path.c_str(), owner, owner) != 0 || ::chmod(path.c_str(), mode) != 0) {
    return std::unexpected(system_error(errno, path));
  }
  return {};
}

/// The agent's folders, owned by its user in a folder of root's. Those of an earlier container of that agent are taken
/// over with all they hold.
Result<void> make_agent_folders(const Record& record, const Layout& layout) {
  const std::string agent(agent_of(record.name));
  const std::string base = layout.agent(agent);
  // For root alone: a guest's root may leave a setuid program in its folders, and give those any mode.
  TRY(make_private_folder(base));
  TRY(make_folder(base, 0700, 0));
  for (const AgentFolder& folder : agent_folders(agent))
    TRY(make_folder(base + "/" + std::string(folder.name), 0750, record.uid));
  return {};
}

/// A number and the unit that systemd knows behind it: "4G" with "KMGT", "200%" with "%".
Result<void> check_limit(std::string_view option, std::string_view value, std::string_view units) {
  const size_t digits = std::min(value.find_first_not_of("0123456789"), value.size());
  std::string_view unit = value.substr(digits);
  bool fits = digits > 0 && digits < 10 && unit.size() == 1 && units.find(unit) != std::string_view::npos;
  if (value.empty() || fits) return {};
  return fail(ErrorCode::invalid_argument, "{}: {} is not a number with one of {} behind it", option, quote(value),
              units);
}

Result<void> write_limits(const CreateOptions& options, const Layout& layout) {
  if (options.limits.memory.empty() && options.limits.cpu.empty()) return {};
  std::string text = "[Service]\n";
  if (!options.limits.memory.empty()) text += fmt::format("MemoryMax={}\n", options.limits.memory);
  if (!options.limits.cpu.empty()) text += fmt::format("CPUQuota={}\n", options.limits.cpu);
  const std::string folder = layout.unit_drop_ins(options.name);
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return std::unexpected(system_error(error.value(), folder));
  TRY(write_file_atomically(folder + "/70-hive-limits.conf", text, 0644));
  return must_run({"systemctl", "daemon-reload"});
}

std::string first_conf(const Record& record, bool private_users) {
  return fmt::format(
      "# Made by hive-container. hive-priv writes the flags and addresses before every start.\n"
      "PRIVATE_NETWORK=1\nHOST_BRIDGE={}\nPRIVATE_USERS={}\nAUTO_START=0\n",
      record.bridge, private_users ? "pick" : "no");
}

Result<void> check_options(const CreateOptions& options, const Layout& layout) {
  if (!priv::check_interface(options.bridge)) {
    return fail(ErrorCode::invalid_argument, "--bridge: {} is not a network interface", quote(options.bridge));
  }
  if (!priv::parse_ipv4(options.gateway_ip)) {
    return fail(ErrorCode::invalid_argument, "--gateway-ip: {} is not an IPv4 address", quote(options.gateway_ip));
  }
  TRY(check_limit("--memory", options.limits.memory, "KMGT"));
  TRY(check_limit("--cpu", options.limits.cpu, "%"));
  for (const std::string& path : {layout.conf(options.name), layout.root(options.name), layout.record(options.name),
                                  layout.template_root(options.name)}) {
    if (::access(path.c_str(), F_OK) == 0) {
      return fail(ErrorCode::already_exists, "{} exists; `hive-container destroy {}` removes a container", path,
                  agent_of(options.name));
    }
  }
  return {};
}

}  // namespace

Result<uid_t> free_uid(const Layout& layout) {
  const std::vector<Record> records = TRY(load_records(layout));
  for (uid_t uid = first_uid; uid <= last_uid; ++uid) {
    // Also not that of a user of the host, who could read and signal what belongs to the agent.
    if (std::ranges::find(records, uid, &Record::uid) == records.end() && ::getpwuid(uid) == nullptr) return uid;
  }
  return fail(ErrorCode::resource_exhausted, "no uid from {} to {} is free; give one by --uid", first_uid, last_uid);
}

Result<Record> create_container(const CreateOptions& options, const Layout& layout,
                                const std::function<void(const std::string&)>& say) {
  TRY(check_options(options, layout));
  Record record{.name = options.name,
                .uid = options.uid != 0 ? options.uid : TRY(free_uid(layout)),
                .bridge = options.bridge,
                .gateway_ip = options.gateway_ip,
                .hive_agent = options.agent.id};
  TRY(make_private_folder(layout.templates()));
  const std::string template_root = layout.template_root(options.name);
  auto made = [&]() -> Result<void> {
    say("making the root template");
    TRY(make_template(options.source, record, template_root));
    TRY(make_agent_folders(record, layout));
    if (!options.agent.id.empty()) {
      say("installing and enrolling myrmex-agent");
      TRY(install_agent(options.agent, record, template_root, layout));
    }
    if (!options.forwarding.endpoint.empty()) {
      TRY(install_forwarder(options.forwarding, record, template_root));
    }
    TRY(write_limits(options, layout));
    std::error_code error;
    std::filesystem::create_directories(layout.conf_folder(), error);
    if (error) return std::unexpected(system_error(error.value(), layout.conf_folder()));
    TRY(save_record(record, layout));
    // Last: from here on there is a container.
    return write_file_atomically(layout.conf(options.name), first_conf(record, options.private_users), 0644);
  }();
  if (made) return record;
  // The agent's folders stay: they are empty, or were there before.
  if (auto removed = must_run({"rm", "-rf", "--one-file-system", "--", template_root, layout.record(options.name),
                               layout.unit_drop_ins(options.name)});
      !removed) {
    say(removed.error().message);
  }
  return std::unexpected(std::move(made).error());
}

}  // namespace hive::container
