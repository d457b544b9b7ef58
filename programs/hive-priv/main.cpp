#include <atomic>
#include <csignal>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include <fmt/format.h>
#include <sys/resource.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include "priv/beneath.h"
#include "priv/check_rootfs.h"
#include "priv/operations.h"
#include "priv/server.h"
#include "priv/setid_filter.h"
#include "priv/settings.h"
#include "priv/units.h"

namespace {

using namespace hive;

constexpr int refused = 1;
constexpr int bad_usage = 2;

// A walk holds up to four descriptors a level of a tree.
constexpr rlim_t wanted_descriptors = 8192;

constexpr std::string_view help_text =
    R"(hive-priv: the root helper that runs agents in containers whose root is thrown away

Usage:
  hive-priv [serve] [--listen PATH] [--root DIR]   answer requests on a Unix socket
  hive-priv check-rootfs NAME [--root DIR]         look at the root of a container before it starts
  hive-priv check-settings [--root DIR]            read /etc/hive-priv.json and say whether it is in order
  hive-priv --version | --help

serve is what hive-priv.socket starts: it takes the socket from systemd, answers, and ends itself when nobody has come
for a while. One connection carries one request, a JSON object on one line, and its answer:

  write_nspawn_flags   salvage a root that persists, then make the container's next start ephemeral
  container_status     state, root, old roots, room on the disk
  start, stop          container@NAME.service
  list_salvages        what switches have kept
  janitor              leftovers of killed containers; "remove": true (root alone) removes them
  ping                 version

check-rootfs is what container@.service runs before a start. It prints
"check-rootfs: refusing to start: PATH is a symlink" for everything that a guest could have planted to trick the start.

Options:
  --listen PATH   make the socket at PATH instead of taking it from systemd
  --root DIR      find every file below DIR instead of /, for tests; no systemd is asked then

Exit codes:
  0  done, or the root is in order
  1  refused, or it could not be done
  2  the command line is wrong

Files:
  /etc/hive-priv.json                settings; not needed. See docs/hive-priv.md
  /etc/nixos-containers/NAME.conf    what a container is started with
  /etc/nixos-containers/NAME.extra   further flags of nspawn, from the owner of the host
  /var/lib/hive-priv                 machine ids, addresses, unfinished switches

Examples:
  hive-priv check-rootfs h-iris
  echo '{"op":"ping"}' | socat -t 120 - UNIX-CONNECT:/run/hive/priv.sock
  echo '{"op":"list_salvages","container":"h-iris"}' | socat -t 120 - UNIX-CONNECT:/run/hive/priv.sock
)";

struct Options {
  std::string command = "serve";
  std::string container;
  std::optional<std::string> listen;
  priv::Layout layout;
};

Result<Options> parse_options(int argc, char** argv) {
  Options options;
  bool has_command = false;
  bool has_container = false;
  for (int i = 1; i < argc; ++i) {
    std::string_view word = argv[i];
    if (word == "--listen" || word == "--root") {
      if (i + 1 >= argc) return fail(ErrorCode::invalid_argument, "{} needs a value", word);
      std::string value = argv[++i];
      if (!value.starts_with('/')) return fail(ErrorCode::invalid_argument, "{} needs an absolute path", word);
      if (word == "--listen") {
        options.listen = value;
      } else {
        options.layout.anchor = value;
      }
    } else if (word == "--help" || word == "-h" || word == "--version") {
      options.command = word;
      return options;
    } else if (!has_command && !word.starts_with('-')) {
      has_command = true;
      options.command = word;
    } else if (!has_container && options.command == "check-rootfs" && !word.starts_with('-')) {
      has_container = true;
      options.container = word;
    } else {
      return fail(ErrorCode::invalid_argument, "unexpected argument \"{}\"", word);
    }
  }
  if (options.command == "check-rootfs" && !has_container) {
    return fail(ErrorCode::invalid_argument, "check-rootfs needs the name of a container");
  }
  if (options.command != "serve" && options.command != "check-rootfs" && options.command != "check-settings") {
    return fail(ErrorCode::invalid_argument, "unknown command \"{}\"", options.command);
  }
  return options;
}

int complain(std::string_view what) {
  fmt::print(stderr, "hive-priv: {}\n", what);
  return refused;
}

int check_rootfs(const Options& options) {
  auto settings = priv::load_settings(options.layout);
  auto findings = settings ? priv::check_rootfs(options.layout, *settings, options.container)
                           : Result<priv::RootfsFindings>(std::unexpected(settings.error()));
  if (!findings) {
    fmt::print(stderr, "check-rootfs: refusing to start: {}\n", findings.error().message);
    return findings.error().code == ErrorCode::invalid_argument && settings ? bad_usage : refused;
  }
  for (const std::string& warning : findings->warnings)
    fmt::print(stderr, "check-rootfs: warning: {}\n", warning);
  for (const std::string& refusal : findings->refusals)
    fmt::print(stderr, "check-rootfs: refusing to start: {}\n", refusal);
  return findings->refusals.empty() ? 0 : refused;
}

void raise_descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= wanted_descriptors) return;
  limit.rlim_cur = std::min(limit.rlim_max, wanted_descriptors);
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

int serve(const Options& options) {
  auto settings = priv::load_settings(options.layout);
  if (!settings) return complain(settings.error().message);
  auto listener = options.listen ? priv::listen_at(*options.listen) : priv::listener_from_systemd();
  if (!listener) return complain(listener.error().message);
  if (!*listener) return complain("no socket from systemd; start hive-priv.socket, or give --listen PATH");
  raise_descriptor_limit();
  if (auto forbidden = priv::forbid_setid_bits(); !forbidden) return complain(forbidden.error().message);

  // Taken by one thread that waits for them; every other thread is started with them blocked.
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  std::signal(SIGPIPE, SIG_IGN);

  std::atomic<bool> stopping = false;
  auto units = options.layout.anchor == "/" ? priv::systemd_units() : priv::no_units();
  priv::Host host{.clock = system_clock(), .units = *units, .stopping = &stopping};
  priv::HostJournal journal;
  priv::Desk desk(options.layout, *settings, host, journal);
  priv::ServerLimits limits;
  if (!options.listen) limits.idle_exit = settings->idle_exit;
  priv::Server server(*std::move(listener), desk, *settings, limits, stopping);
  std::thread waiter([&] {
    int signal = 0;
    ::sigwait(&signals, &signal);
    server.stop();
  });
  sd_notify(0, "READY=1");
  auto ended = server.run();
  sd_notify(0, "STOPPING=1");
  // The waiter may still wait; this signal is the one it takes.
  ::pthread_kill(waiter.native_handle(), SIGTERM);
  waiter.join();
  return ended ? 0 : complain(ended.error().message);
}

}  // namespace

int main(int argc, char** argv) {
  auto options = parse_options(argc, argv);
  if (!options) {
    fmt::print(stderr, "hive-priv: {}; see hive-priv --help\n", options.error().message);
    return bad_usage;
  }
  if (options->command == "--help" || options->command == "-h") {
    fmt::print("{}", help_text);
    return 0;
  }
  if (options->command == "--version") {
    fmt::print("hive-priv {}\n", HIVE_VERSION);
    return 0;
  }
  if (!priv::kernel_has_openat2()) {
    return complain(
        "openat2 is missing: Linux 5.6 or later is needed, and no RestrictSUIDSGID= in the unit, whose filter takes it "
        "away");
  }
  if (options->command == "check-rootfs") return check_rootfs(*options);
  if (options->command == "check-settings") {
    auto settings = priv::load_settings(options->layout);
    if (!settings) return complain(settings.error().message);
    fmt::print("{} is in order\n", options->layout.shown(options->layout.settings_file));
    return 0;
  }
  return serve(*options);
}
