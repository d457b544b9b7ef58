#include "container/bridge_port.h"

#include <filesystem>
#include <system_error>

#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "container/names.h"
#include "container/program.h"
#include "priv/ipv4.h"

namespace hive::container {

namespace {

// An element of the set as we gave it to nft, so that exactly that can be taken back after the file has changed.
std::string element_file(std::string_view name, const Layout& layout) {
  return layout.run_folder(name) + "/port";
}

constexpr size_t max_element_bytes = 256;

Result<void> change_set(const std::string& verb, const std::string& element) {
  return must_run({"nft", verb, "element", "bridge", "hive_containers", "ports", element});
}

Result<void> forget_port(std::string_view name, const Layout& layout) {
  const std::string path = element_file(name, layout);
  if (::access(path.c_str(), F_OK) != 0) return {};
  const std::string element = TRY(read_file(path, max_element_bytes));
  // Gone already when somebody has loaded the rules anew from nothing.
  if (auto removed = change_set("delete", element); !removed) {
    log::warning("the firewall did not know the port any more", {{"port", port_of(name)}});
  }
  if (::unlink(path.c_str()) != 0) return std::unexpected(system_error(errno, path));
  return {};
}

}  // namespace

Result<void> admit_port(std::string_view name, const GuestNetwork& network, const Layout& layout) {
  TRY(make_private_folder(layout.run_folder(name)));
  TRY(forget_port(name, layout));
  const std::string element =
      fmt::format("{{ {} . {} . {} }}", port_of(name), network.mac(), priv::format_ipv4(network.address));
  if (auto added = change_set("add", element); !added) {
    return std::unexpected(
        with_context(std::move(added).error(),
                     "the firewall does not take the port; run: systemctl restart hive-container-firewall"));
  }
  return write_file_atomically(element_file(name, layout), element, 0600);
}

Result<void> isolate_port(std::string_view name) {
  return must_run({"bridge", "link", "set", "dev", port_of(name), "isolated", "on"});
}

Result<void> release_port(std::string_view name, const Layout& layout) {
  TRY(forget_port(name, layout));
  std::error_code error;
  std::filesystem::remove_all(layout.run_folder(name), error);
  if (error) return std::unexpected(system_error(error.value(), layout.run_folder(name)));
  return {};
}

}  // namespace hive::container
