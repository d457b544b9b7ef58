#include <cerrno>
#include <csignal>
#include <cstdio>

#include <CLI/CLI.hpp>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/log.h"
#include "base/strings.h"
#include "base/unique_fd.h"
#include "config/gateway_check.h"
#include "config/gateway_config.h"
#include "net/runtime/service_manager.h"
#include "net/vault/vault.h"
#include "service.h"

namespace {

constexpr int exit_configuration = 1;
constexpr int exit_usage = 2;

// Blocked before any thread starts, so that only the main thread takes them, with sigwait.
sigset_t block_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (int signal : {SIGTERM, SIGINT, SIGHUP})
    sigaddset(&signals, signal);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  return signals;
}

// Every agent and every caller holds a descriptor.
void raise_descriptor_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == limit.rlim_max) return;
  limit.rlim_cur = limit.rlim_max;
  if (setrlimit(RLIMIT_NOFILE, &limit) != 0) hive::log::warning("the limit on open files cannot be raised");
}

void report(const hive::Error& error) {
  std::fprintf(stderr, "myrmex-gateway: %s\n", error.message.c_str());
}

// Of the client that speaks MCP with us. What else in this process or in its children may use standard input and output
// finds nothing to read, and its words among the logs.
struct StandardStreams {
  hive::UniqueFd in;
  hive::UniqueFd out;
};

hive::Result<StandardStreams> take_standard_streams() {
  constexpr int first_own = 3;
  StandardStreams streams;
  streams.in.reset(fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, first_own));
  streams.out.reset(fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, first_own));
  hive::UniqueFd nothing(open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (!streams.in || !streams.out || !nothing) {
    return std::unexpected(hive::system_error(errno, "--mcp-stdio: standard input and output"));
  }
  if (dup2(nothing.get(), STDIN_FILENO) < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0) {
    return std::unexpected(hive::system_error(errno, "--mcp-stdio: standard input and output"));
  }
  return streams;
}

int run(const std::string& config_path, bool with_stdio) {
  const hive::net::ServiceManager manager = hive::net::ServiceManager::of_this_process();
  StandardStreams streams;
  if (with_stdio) {
    auto taken = take_standard_streams();
    if (!taken) {
      report(taken.error());
      return exit_configuration;
    }
    streams = *std::move(taken);
  }
  auto config = hive::config::load_gateway_config(config_path,
                                                  hive::net::vault::with_vault(hive::config::SecretSources::system()));
  if (!config) {
    report(config.error());
    return exit_configuration;
  }
  hive::log::set_level(config->log_level);
  sigset_t signals = block_signals();
  raise_descriptor_limit();
  auto service = hive::gateway::Service::start(*std::move(config));
  if (!service) {
    report(service.error());
    return exit_configuration;
  }
  if (with_stdio) {
    // The end of the client is the end of the program, like a signal.
    (*service)->serve_stdio(streams.in.get(), streams.out.get(), [] { kill(getpid(), SIGTERM); });
  }
  (*service)->report_to(manager);
  while (true) {
    int signal = 0;
    if (sigwait(&signals, &signal) != 0) continue;
    if (signal != SIGHUP) break;
    manager.reloading();
    if (auto reloaded = (*service)->reload(); !reloaded) {
      hive::log::error("the configuration was not reloaded; the old one stays in force",
                       {{"reason", reloaded.error().message}});
    }
    manager.ready((*service)->status());
  }
  manager.stopping();
  if (with_stdio) {
    // Clients kill a server that is not gone after two seconds or so.
    (*service)->stop(std::chrono::milliseconds(200), std::chrono::milliseconds(400));
  } else {
    (*service)->stop(std::chrono::seconds(10));
  }
  return 0;
}

int check(const std::string& config_path) {
  auto config = hive::config::load_gateway_config(config_path,
                                                  hive::net::vault::with_vault(hive::config::SecretSources::system()));
  if (!config) {
    report(config.error());
    return exit_configuration;
  }
  for (const std::string& key : config->without_effect)
    std::printf("%s: no effect yet: %s\n", config_path.c_str(), key.c_str());
  hive::config::GatewayFindings findings = hive::config::check_gateway_files(*config);
  for (const std::string& warning : findings.warnings)
    std::printf("%s (warning)\n", hive::escape_for_terminal(warning).c_str());
  for (const std::string& error : findings.errors)
    std::fprintf(stderr, "myrmex-gateway: %s\n", hive::escape_for_terminal(error).c_str());
  if (!findings.errors.empty()) return exit_configuration;
  std::printf("%s: good\n", config_path.c_str());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  // The reference's flags have one dash.
  std::vector<std::string> arguments;
  for (int i = argc - 1; i > 0; --i) {
    std::string argument = argv[i];
    if (argument.size() > 2 && argument[0] == '-' && argument[1] != '-') argument.insert(0, "-");
    arguments.push_back(std::move(argument));
  }
  CLI::App app("Accepts the tunnels of Myrmex Hive agents and offers the fleet's tools to people and models.",
               "myrmex-gateway");
  app.footer(
      "Signals: SIGTERM drains and stops, SIGHUP reloads the configuration.\n\n"
      "Examples:\n"
      "  myrmex-gateway --check-config /etc/myrmex-gateway/gateway_config.json\n"
      "  myrmex-gateway --config /etc/myrmex-gateway/gateway_config.json\n"
      "  myrmex-gateway --mcp-stdio --config ~/hive/gateway_config.json");
  std::string config_path = "gateway_config.json";
  std::string check_path;
  app.add_option("--config", config_path, "The configuration file")->capture_default_str()->type_name("FILE");
  app.add_option("--check-config", check_path, "Check a configuration file and stop")->type_name("FILE");
  bool with_stdio = false;
  app.add_flag("--mcp-stdio", with_stdio,
               "Serve MCP on standard input and output as well, with the role stdio_role; end when the input ends");
  app.set_version_flag("--version", "myrmex-gateway " HIVE_VERSION);
  try {
    app.parse(arguments);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : exit_usage;
  }
  // Vault is asked for secrets already while the configuration is read.
  std::signal(SIGPIPE, SIG_IGN);
  return check_path.empty() ? run(config_path, with_stdio) : check(check_path);
}
