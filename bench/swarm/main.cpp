// swarm: one process that is many agents, with the product's own tunnel, tools and allowlist. For benchmarks and tests.
#include <charconv>
#include <cstdio>
#include <string>

#include <CLI/CLI.hpp>
#include <malloc.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/unique_fd.h"
#include "swarm/keys.h"
#include "swarm/ledger.h"
#include "swarm/swarm.h"

namespace {

using namespace hive;

constexpr int exit_failure = 1;
constexpr int exit_usage = 2;
constexpr int report_milliseconds = 500;

constexpr const char* footer = R"(Prints one JSON object a line:
  {"event":"count",...}       twice a second while anything changes
  {"event":"all_online",...}  everybody is online: how long each was away, dials of every second, why dials failed
  {"event":"status",...}      the same at any time, on SIGUSR1
  {"event":"done",...}        at the end
It ends in good order on SIGTERM and SIGINT, when a pipe that is its standard input ends, and after --connections.

Examples, with a hive that ./hive up has started in /tmp/hive:
  swarm keys 200 /tmp/swarm.keys >>/tmp/hive/gateway/authorized_keys
  swarm run --config /tmp/hive/agents/agent-1/agent_config.json --keys /tmp/swarm.keys
  swarm run --config agent_config.json --keys swarm.keys --count 50 --churn 20 --connections 1000)";

struct RunOptions {
  std::string config_path;
  std::string keys_path;
  std::size_t count = 0;
  std::vector<std::string> gateways;
  int keepalive_seconds = 0;
  std::size_t threads = 1;
  int spread_ms = 0;
  int backoff_base_ms = 1000;
  int backoff_cap_ms = 30'000;
  int churn_ms = -1;
  std::uint64_t connections = 0;
  bool real_host_facts = false;
  std::string log_level = "error";
};

void print_line(const std::string& line) {
  // Whoever reads this decides by it when to go on.
  std::fprintf(stdout, "%s\n", line.c_str());
  std::fflush(stdout);
}

Result<swarm::Options> swarm_options(const RunOptions& given) {
  swarm::Options options;
  options.pattern = TRY(config::load_agent_config(given.config_path));
  if (!given.gateways.empty()) options.pattern.gateways.clear();
  for (const std::string& text : given.gateways)
    options.pattern.gateways.push_back(TRY_CONTEXT("--gateway", config::parse_gateway_address(text)));
  if (given.keepalive_seconds > 0) options.pattern.keepalive = std::chrono::seconds(given.keepalive_seconds);
  options.threads = given.threads;
  options.spread = std::chrono::milliseconds(given.spread_ms);
  options.backoff_base = std::chrono::milliseconds(given.backoff_base_ms);
  options.backoff_cap = std::chrono::milliseconds(given.backoff_cap_ms);
  if (given.churn_ms >= 0) options.churn = std::chrono::milliseconds(given.churn_ms);
  options.real_host_facts = given.real_host_facts;
  return options;
}

bool is_pipe(int fd) {
  struct stat status{};
  return ::fstat(fd, &status) == 0 && (S_ISFIFO(status.st_mode) || S_ISSOCK(status.st_mode));
}

// Until somebody or something ends the swarm.
void watch(swarm::Ledger& ledger, const UniqueFd& signals, std::uint64_t connections) {
  pollfd watched[] = {{.fd = signals.get(), .events = POLLIN, .revents = 0},
                      {.fd = is_pipe(STDIN_FILENO) ? STDIN_FILENO : -1, .events = POLLIN, .revents = 0}};
  while (connections == 0 || ledger.connections() < connections) {
    (void)::poll(watched, std::size(watched), report_milliseconds);
    ledger.report_changes();
    char ignored[64];
    if (watched[1].revents != 0 && ::read(STDIN_FILENO, ignored, sizeof(ignored)) <= 0) return;
    signalfd_siginfo signal{};
    if ((watched[0].revents & POLLIN) == 0 || ::read(signals.get(), &signal, sizeof(signal)) != sizeof(signal))
      continue;
    if (signal.ssi_signo != SIGUSR1) return;
    ledger.report("status");
  }
}

// Each agent needs a socket, and a second descriptor while its output is blocked.
void raise_descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  (void)::setrlimit(RLIMIT_NOFILE, &limit);
}

Result<void> run(const RunOptions& given) {
  swarm::Options options = TRY(swarm_options(given));
  std::vector<swarm::Identity> identities = TRY(swarm::load_keys(given.keys_path, given.count));
  sigset_t handled;
  ::sigemptyset(&handled);
  for (const int signal : {SIGTERM, SIGINT, SIGUSR1})
    ::sigaddset(&handled, signal);
  ::pthread_sigmask(SIG_BLOCK, &handled, nullptr);
  const UniqueFd signals(::signalfd(-1, &handled, SFD_CLOEXEC));
  if (!signals) return std::unexpected(system_error(errno, "signalfd"));

  swarm::Ledger ledger(identities.size(), system_clock(), print_line);
  const std::unique_ptr<swarm::Swarm> swarm =
      TRY(swarm::Swarm::create(std::move(options), std::move(identities), ledger));
  swarm->start();
  watch(ledger, signals, given.connections);
  ledger.report("done");
  swarm->stop();
  return {};
}

Result<void> make_keys(std::size_t count, const std::string& path, const std::string& prefix) {
  const std::string lines = TRY(swarm::make_keys(prefix, count, path));
  if (std::fwrite(lines.data(), 1, lines.size(), stdout) != lines.size() || std::fflush(stdout) != 0) {
    return std::unexpected(system_error(errno, "standard output"));
  }
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Many agents in one process, for benchmarks and tests.", "swarm");
  app.footer(footer);
  app.require_subcommand(1);

  std::size_t count = 0;
  std::string path;
  std::string prefix = "swarm";
  CLI::App* keys = app.add_subcommand("keys", "Make keys, and print their authorized_keys lines");
  keys->add_option("count", count, "How many")->required()->check(CLI::Range(1, 100'000));
  keys->add_option("file", path, "Where the private keys go")->required();
  keys->add_option("--prefix", prefix, "The agents are called PREFIX-1, PREFIX-2, ...")->capture_default_str();

  RunOptions options;
  CLI::App* running = app.add_subcommand("run", "Connect the agents, and answer what the gateway asks");
  running
      ->add_option("--config", options.config_path,
                   "An agent's configuration, the pattern of all: gateways, host key, "
                   "allowlist, keepalive")
      ->required();
  running->add_option("--keys", options.keys_path, "The file that `swarm keys` has written")->required();
  running->add_option("--count", options.count, "The first N keys only")->check(CLI::Range(1, 100'000));
  running->add_option("--gateway", options.gateways, "HOST:PORT instead of the configuration's; may be repeated");
  running->add_option("--keepalive", options.keepalive_seconds, "Seconds, instead of the configuration's")
      ->check(CLI::Range(1, 3600));
  running->add_option("--threads", options.threads, "Threads")->capture_default_str()->check(CLI::Range(1, 64));
  running->add_option("--spread-ms", options.spread_ms, "Spread the first dials at random over this time")
      ->capture_default_str()
      ->check(CLI::Range(0, 3'600'000));
  running->add_option("--backoff-base-ms", options.backoff_base_ms, "First delay of the backoff, as the agent's")
      ->capture_default_str()
      ->check(CLI::Range(1, 3'600'000));
  running->add_option("--backoff-cap-ms", options.backoff_cap_ms, "Its longest delay")
      ->capture_default_str()
      ->check(CLI::Range(1, 3'600'000));
  running->add_option("--churn", options.churn_ms, "Hang up so many milliseconds after the first answer, and redial")
      ->check(CLI::Range(0, 3'600'000));
  running->add_option("--connections", options.connections, "End after so many connections");
  running->add_flag("--real-host-facts", options.real_host_facts,
                    "Answer get_system_info from this machine, not with what a small host says");
  running->add_option("--log-level", options.log_level, "debug, info, warning or error")
      ->capture_default_str()
      ->check(CLI::IsMember({"debug", "info", "warning", "error"}));
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : exit_usage;
  }

  log::set_level(options.log_level);
  ::signal(SIGPIPE, SIG_IGN);
  ::mallopt(M_ARENA_MAX, 2);
  raise_descriptor_limit();
  const Result<void> result = keys->parsed() ? make_keys(count, path, prefix) : run(options);
  if (result) return 0;
  std::fprintf(stderr, "swarm: %s\n", result.error().message.c_str());
  return exit_failure;
}
