#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/strings.h"
#include "container/bridge_port.h"
#include "container/conf.h"
#include "container/nspawn_arguments.h"
#include "container/program.h"
#include "container/start.h"
#include "priv/names.h"

namespace {

constexpr int refused = 1;
constexpr int bad_usage = 2;

constexpr std::string_view help_text =
    R"(hive-container-start: starts a container for container@.service; people use hive-container

Usage:
  hive-container-start NAME             become systemd-nspawn, as /etc/nixos-containers/NAME.conf says
  hive-container-start --print NAME     print what that would be, one argument a line, and change nothing
  hive-container-start --isolate NAME   when it runs: keep its bridge port apart from those of other containers
  hive-container-start --release NAME   when it has ended: close its port in the firewall

No shell is involved and nothing in the file is expanded. A root without a system becomes a copy of
/var/lib/hive-container/templates/NAME. The container's network files lie in /run/hive-container/NAME.

Exit codes: 1 refused or failed, 2 wrong command line; otherwise those of systemd-nspawn.

Example:
  hive-container-start --print h-iris
)";

hive::Result<std::vector<std::string>> arguments_of(std::string_view name, const hive::container::Layout& layout) {
  using namespace hive::container;
  TRY(hive::priv::check_any_container(name));
  const Conf conf = TRY(Conf::load(layout.conf(name)));
  return nspawn_arguments(conf, name, TRY(guest_network(conf)), layout);
}

hive::Result<void> isolate(std::string_view name, const hive::container::Layout& layout) {
  using namespace hive::container;
  TRY(hive::priv::check_any_container(name));
  const Conf conf = TRY(Conf::load(layout.conf(name)));
  if (conf.get("HOST_BRIDGE").empty()) return {};
  return isolate_port(name);
}

hive::Result<void> release(std::string_view name, const hive::container::Layout& layout) {
  TRY(hive::priv::check_any_container(name));
  return hive::container::release_port(name, layout);
}

int ended(const hive::Result<void>& result) {
  if (result) return 0;
  fmt::print(stderr, "hive-container-start: {}\n", hive::escape_for_terminal(result.error().message));
  return refused;
}

int start(std::string_view name, const hive::container::Layout& layout) {
  auto arguments = hive::container::prepare_start(name, layout);
  if (!arguments) return ended(std::unexpected(arguments.error()));
  return ended(std::unexpected(hive::container::become_program(*arguments)));
}

int print(std::string_view name, const hive::container::Layout& layout) {
  auto arguments = arguments_of(name, layout);
  if (!arguments) return ended(std::unexpected(arguments.error()));
  for (const std::string& argument : *arguments)
    fmt::print("{}\n", argument);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string_view> words(argv + 1, argv + argc);
  const hive::container::Layout layout;
  if (words.size() == 1 && (words[0] == "--help" || words[0] == "-h")) {
    fmt::print("{}", help_text);
    return 0;
  }
  if (words.size() == 1 && words[0] == "--version") {
    fmt::print("hive-container-start {}\n", HIVE_VERSION);
    return 0;
  }
  if (words.size() == 1 && !words[0].starts_with('-')) return start(words[0], layout);
  if (words.size() == 2 && words[0] == "--print") return print(words[1], layout);
  if (words.size() == 2 && words[0] == "--isolate") return ended(isolate(words[1], layout));
  if (words.size() == 2 && words[0] == "--release") return ended(release(words[1], layout));
  fmt::print(stderr, "hive-container-start: wrong command line\n\n{}", help_text);
  return bad_usage;
}
