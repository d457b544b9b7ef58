#include "container/nspawn_arguments.h"

#include <algorithm>
#include <array>

#include <unistd.h>

#include "base/strings.h"
#include "container/names.h"
#include "priv/names.h"

namespace hive::container {

namespace {

struct ExtraOption {
  std::string_view name;
  bool has_value = true;
};

// What EXTRA_NSPAWN_FLAGS may hold; see systemd-nspawn(1). Not among them: what chooses the root, its name and what is
// run, and what gives the guest more of the host than a container has.
constexpr auto extra_options = std::to_array<ExtraOption>({
    {"--ephemeral", false},
    {"--read-only", false},
    {"--link-journal"},
    {"--uuid"},
    {"--hostname"},
    {"--capability"},
    {"--drop-capability"},
    {"--no-new-privileges"},
    {"--private-users"},
    {"--private-users-ownership"},
    {"--bind"},
    {"--bind-ro"},
    {"--inaccessible"},
    {"--overlay"},
    {"--overlay-ro"},
    {"--tmpfs"},
    {"--setenv"},
    {"--rlimit"},
    {"--oom-score-adjust"},
    {"--cpu-affinity"},
    {"--system-call-filter"},
    {"--timezone"},
});

constexpr size_t max_interface_bytes = 15;

bool is_plain(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return c > ' ' && c < '\x7f'; });
}

Result<void> check_extra(std::string_view word, const std::string& path) {
  size_t equals = word.find('=');
  std::string_view name = word.substr(0, equals);
  const auto* known = std::ranges::find(extra_options, name, &ExtraOption::name);
  if (known == extra_options.end() || !is_plain(word)) {
    return fail(ErrorCode::invalid_argument, "{}: EXTRA_NSPAWN_FLAGS: {} is not an option that may stand there", path,
                quote(word));
  }
  if (known->has_value != (equals != std::string_view::npos)) {
    return fail(ErrorCode::invalid_argument, "{}: EXTRA_NSPAWN_FLAGS: {} {}", path, quote(word),
                known->has_value ? "needs a value behind =" : "takes no value");
  }
  return {};
}

/// For keys that list interfaces: "INTERFACES" and "MACVLANS".
Result<void> add_interfaces(const Conf& conf, std::string_view key, std::string_view option,
                            std::vector<std::string>& arguments) {
  for (std::string_view word : split(conf.get(key), ' ')) {
    if (word.empty()) continue;
    if (!priv::check_interface(word)) {
      return fail(ErrorCode::invalid_argument, "{}: {}: {} is not a network interface", conf.path(), key, quote(word));
    }
    arguments.push_back(fmt::format("{}={}", option, word));
  }
  return {};
}

Result<void> add_ports(const Conf& conf, std::vector<std::string>& arguments) {
  std::string_view value = conf.get("HOST_PORT");
  if (value.empty()) return {};
  for (std::string_view port : split(value, ',')) {
    bool fits = !port.empty() && std::ranges::all_of(port, [](char c) {
      return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || c == ':';
    });
    if (!fits) {
      return fail(ErrorCode::invalid_argument, "{}: HOST_PORT: {} is not tcp:HOST:GUEST, udp:HOST:GUEST or a number",
                  conf.path(), quote(port));
    }
    arguments.push_back(fmt::format("--port={}", port));
  }
  return {};
}

Result<void> add_network(const Conf& conf, std::string_view name, std::vector<std::string>& arguments) {
  std::string_view bridge = conf.get("HOST_BRIDGE");
  std::string_view name_space = conf.get("NETWORK_NAMESPACE_PATH");
  const bool is_private = TRY(conf.flag("PRIVATE_NETWORK"));
  if (is_private) arguments.emplace_back("--private-network");
  if (!is_private && bridge.empty() && name_space.empty() && priv::is_agent_container(name)) {
    return fail(ErrorCode::invalid_argument,
                "{}: an agent's container never shares the host's network; set PRIVATE_NETWORK=1 and HOST_BRIDGE",
                conf.path());
  }
  if (!bridge.empty()) {
    if (!priv::check_interface(bridge) || port_of(name).size() > max_interface_bytes) {
      return fail(ErrorCode::invalid_argument,
                  "{}: HOST_BRIDGE: {} is not a network interface, or the name of the container is too long for one",
                  conf.path(), quote(bridge));
    }
    arguments.push_back(fmt::format("--network-bridge={}", bridge));
  } else {
    for (std::string_view key : {"HOST_ADDRESS", "LOCAL_ADDRESS", "HOST_ADDRESS6", "LOCAL_ADDRESS6"}) {
      if (!conf.get(key).empty()) {
        return fail(ErrorCode::invalid_argument, "{}: {} needs HOST_BRIDGE here; a link without a bridge is not set up",
                    conf.path(), key);
      }
    }
  }
  if (!name_space.empty()) {
    if (!name_space.starts_with('/') || !is_plain(name_space)) {
      return fail(ErrorCode::invalid_argument, "{}: NETWORK_NAMESPACE_PATH: {} is not an absolute path", conf.path(),
                  quote(name_space));
    }
    arguments.push_back(fmt::format("--network-namespace-path={}", name_space));
  }
  TRY(add_interfaces(conf, "INTERFACES", "--network-interface", arguments));
  TRY(add_interfaces(conf, "MACVLANS", "--network-macvlan", arguments));
  return add_ports(conf, arguments);
}

Result<void> add_users(const Conf& conf, std::vector<std::string>& arguments) {
  std::string_view users = conf.get("PRIVATE_USERS");
  if (users.empty() || users == "no") return {};
  if (users != "pick" && users != "identity" && users != "yes" && !parse_int64(users)) {
    return fail(ErrorCode::invalid_argument, "{}: PRIVATE_USERS: {} is not no, pick, identity or a number", conf.path(),
                quote(users));
  }
  arguments.push_back(fmt::format("--private-users={}", users));
  return {};
}

/// Whether the guest's users are others on the host than inside.
bool has_users_of_its_own(const Conf& conf) {
  std::string_view users = conf.get("PRIVATE_USERS");
  return !users.empty() && users != "no" && users != "identity";
}

/// A bind as it is for a guest with users of its own: the agent's folders keep their owner's uid inside and on the
/// host. Without that mapping they would be nobody's, and nothing could be written. Binds with options of their own
/// stay.
std::string with_owners(std::string_view word) {
  constexpr std::string_view option = "--bind=";
  if (!word.starts_with(option) || std::ranges::count(word, ':') != 1 || word.contains('\\')) return std::string(word);
  return fmt::format("{}:idmap", word);
}

void add_nix(std::string_view name, const Layout& layout, std::vector<std::string>& arguments) {
  if (!host_has_nix(layout)) return;
  arguments.push_back(fmt::format("--bind-ro={}:{}", layout.at(NixFolders::store), NixFolders::store));
  for (std::string_view folder : {NixFolders::profiles, NixFolders::roots})
    arguments.push_back(fmt::format("--bind={}/per-container/{}:{}", layout.at(folder), name, folder));
}

}  // namespace

bool host_has_nix(const Layout& layout) {
  return ::access((layout.at(NixFolders::profiles) + "/per-container").c_str(), F_OK) == 0;
}

Result<std::vector<std::string>> nspawn_arguments(const Conf& conf, std::string_view name,
                                                  const std::optional<GuestNetwork>& network, const Layout& layout) {
  if (!conf.get("SYSTEM_PATH").empty()) {
    return fail(ErrorCode::invalid_argument,
                "{}: SYSTEM_PATH is for NixOS, whose own container@.service starts such a container", conf.path());
  }
  std::vector<std::string> arguments{
      "/usr/bin/systemd-nspawn",
      "--quiet",
      // A NAME.nspawn file could say anything; what runs is what this file says.
      "--settings=no",
      "--keep-unit",
      "--boot",
      "--notify-ready=yes",
      "--link-journal=try-guest",
      fmt::format("--machine={}", name),
      fmt::format("--directory={}", layout.root(name)),
  };
  TRY(add_network(conf, name, arguments));
  TRY(add_users(conf, arguments));
  if (network) {
    const std::string folder = layout.run_folder(name);
    arguments.emplace_back("--resolv-conf=off");
    arguments.push_back(
        fmt::format("--bind-ro={}/{}:/etc/systemd/network/10-host0.network", folder, network_file_name));
    arguments.push_back(fmt::format("--bind-ro={}/{}:/etc/resolv.conf", folder, resolver_file_name));
  } else {
    arguments.emplace_back(TRY(conf.flag("COPY_RESOLV_CONF")) ? "--resolv-conf=copy-host" : "--resolv-conf=off");
  }
  add_nix(name, layout, arguments);
  for (std::string_view word : conf.extra_flags()) {
    TRY(check_extra(word, conf.path()));
    arguments.emplace_back(word);
  }
  if (has_users_of_its_own(conf)) std::ranges::transform(arguments, arguments.begin(), with_owners);
  return arguments;
}

}  // namespace hive::container
