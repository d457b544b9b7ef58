#include "container/start.h"

#include <cerrno>
#include <utility>

#include <net/if.h>
#include <sys/stat.h>

#include "base/file.h"
#include "container/bridge_port.h"
#include "container/conf.h"
#include "container/guest_network.h"
#include "container/nspawn_arguments.h"
#include "container/root_fill.h"
#include "priv/names.h"

namespace hive::container {

namespace {

Result<void> write_network_files(std::string_view name, const GuestNetwork& network, const Layout& layout) {
  const std::string folder = layout.run_folder(name);
  TRY(make_private_folder(folder));
  TRY(write_file_atomically(folder + "/" + std::string(network_file_name), network.network_file(), 0644));
  return write_file_atomically(folder + "/" + std::string(resolver_file_name), network.resolver_file(), 0644);
}

/// Makes the folders that the container's nix profiles are bound from; those above them are root's alone.
Result<void> make_nix_folders(std::string_view name, const Layout& layout) {
  if (!host_has_nix(layout)) return {};
  for (std::string_view folder : {NixFolders::profiles, NixFolders::roots}) {
    const std::string all = layout.at(folder) + "/per-container";
    const std::string own = all + "/" + std::string(name);
    // The guest's own users must reach what is theirs; users of the host with the same uids must not.
    for (auto [path, mode] : {std::pair(&all, mode_t{0700}), std::pair(&own, mode_t{0755})}) {
      if (::mkdir(path->c_str(), mode) != 0 && errno != EEXIST) return std::unexpected(system_error(errno, *path));
    }
  }
  return {};
}

}  // namespace

Result<std::vector<std::string>> prepare_start(std::string_view name, const Layout& layout) {
  TRY(priv::check_any_container(name));
  const Conf conf = TRY(Conf::load(layout.conf(name)));
  const std::optional<GuestNetwork> network = TRY(guest_network(conf));
  // Everything that can be wrong with the file comes out before anything is changed.
  std::vector<std::string> arguments = TRY(nspawn_arguments(conf, name, network, layout));
  const std::string bridge(conf.get("HOST_BRIDGE"));
  if (!bridge.empty() && ::if_nametoindex(bridge.c_str()) == 0) {
    return fail(ErrorCode::not_found, "{}: HOST_BRIDGE: there is no bridge {} on this host; see docs/containers.md",
                conf.path(), bridge);
  }
  TRY(fill_root(name, layout));
  TRY(make_nix_folders(name, layout));
  if (network) {
    TRY(write_network_files(name, *network, layout));
    TRY(admit_port(name, *network, layout));
  }
  return arguments;
}

}  // namespace hive::container
