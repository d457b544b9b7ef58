#include <chrono>
#include <cstdio>
#include <functional>
#include <future>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <fmt/format.h>
#include <malloc.h>
#include <signal.h>
#include <unistd.h>

#include "agent/agent.h"
#include "agent/end_limit.h"
#include "agent/resident_code.h"
#include "agent/tunnel.h"
#include "base/log.h"
#include "config/agent_check.h"
#include "config/agent_config.h"
#include "config/secret_reference.h"
#include "crypto/ssh_key.h"
#include "net/runtime/runtime.h"
#include "net/runtime/service_manager.h"
#include "net/runtime/watchdog.h"
#include "net/vault/vault.h"
#include "subcommands.h"

namespace {

constexpr int bad_usage = 2;
constexpr int bad_configuration = 1;

// After this long the first connection stands, or the gateway is away and the wait will be longer.
constexpr std::chrono::milliseconds start_phase = std::chrono::seconds(5);

// Running commands get up to 4.5 s to end and their results must be sent; nothing after that should take long.
constexpr std::chrono::milliseconds end_limit = std::chrono::seconds(6);

constexpr std::string_view help_text =
    R"(myrmex-agent: lets a gateway operate this machine, as far as its allowlist goes

Usage:
  myrmex-agent --config FILE              dial out to the gateway and answer its calls
  myrmex-agent --check-config FILE        explain a configuration: what each entry admits, what is wrong
  myrmex-agent doctor [OPTIONS]           why it does not connect, step by step; see myrmex-agent doctor --help
  myrmex-agent completion bash|zsh|fish   print a completion script
  myrmex-agent --version

Options:
  --config FILE        configuration (default: agent_config.json in the working directory)
  --check-config FILE  exit code 1 if the agent would not start with it
  --json               with --check-config: the report as JSON
  --version            print the version
  --help               print this text

Examples:
  myrmex-agent --check-config /etc/myrmex-agent/agent_config.json
  myrmex-agent --config /etc/myrmex-agent/agent_config.json

SIGTERM and SIGINT end it in good order: running commands are ended, their results sent. SIGHUP takes up a new private
key from private_key_path, or from where private_key refers to: the agent connects with it before it gives up the old
connection. Other settings need a restart.
)";

struct Options {
  std::string config = "agent_config.json";
  std::optional<std::string> check;
  bool json = false;
  bool version = false;
  bool help = false;
};

// One or two dashes, "--key value" or "--key=value": what scripts written for the Go product use keeps working.
hive::Result<Options> parse_options(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    std::string_view word = argv[i];
    if (!word.starts_with('-')) {
      return hive::fail(hive::ErrorCode::invalid_argument, "unexpected argument \"{}\"", word);
    }
    word.remove_prefix(word.starts_with("--") ? 2 : 1);
    size_t equals = word.find('=');
    std::string_view name = word.substr(0, equals);
    auto value = [&]() -> hive::Result<std::string> {
      if (equals != std::string_view::npos) return std::string(word.substr(equals + 1));
      if (i + 1 >= argc) return hive::fail(hive::ErrorCode::invalid_argument, "--{} needs a file name", name);
      return std::string(argv[++i]);
    };
    if (name == "config" || name == "c") {
      options.config = TRY(value());
    } else if (name == "check-config") {
      options.check = TRY(value());
    } else if (name == "json") {
      options.json = true;
    } else if (name == "version" || name == "v") {
      options.version = true;
    } else if (name == "help" || name == "h") {
      options.help = true;
    } else {
      return hive::fail(hive::ErrorCode::invalid_argument, "unknown option \"{}\"", argv[i]);
    }
  }
  if (options.json && !options.check && !options.help && !options.version) {
    return hive::fail(hive::ErrorCode::invalid_argument, "--json goes with --check-config only");
  }
  return options;
}

hive::config::SecretSources secret_sources() {
  return hive::net::vault::with_vault(hive::config::SecretSources::system());
}

int check(const std::string& path, bool json) {
  hive::config::SecretSources sources = secret_sources();
  hive::config::CheckReport report =
      hive::config::check_agent_config(path, {.colour = ::isatty(STDOUT_FILENO) == 1, .sources = &sources});
  const std::string& text = json ? report.json : report.text;
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0) {
    return bad_configuration;
  }
  return report.exit_code();
}

// The signals that main waits for; blocked everywhere else. Commands get an empty mask of their own.
sigset_t handled_signals() {
  sigset_t signals;
  ::sigemptyset(&signals);
  for (int signal : {SIGTERM, SIGINT, SIGHUP})
    ::sigaddset(&signals, signal);
  return signals;
}

// The key that the reference in the configuration stands for now; nullopt if there is none that could be used.
std::optional<hive::config::Secret> read_new_key(const std::string& config_path) {
  auto config = hive::config::load_agent_config(config_path, secret_sources());
  if (config && !config->private_key.empty()) {
    hive::log::info("reloading the private key; other settings need a restart", {{"file", config_path}});
    return std::move(config->private_key);
  }
  hive::log::error("the private key is not reloaded; the old connection stays",
                   {{"reason", config ? "private_key is not set any more" : config.error().message}});
  return std::nullopt;
}

// Whether the file holds a usable key now; if not, the agent goes on as before.
bool check_new_key(const std::string& path) {
  auto key = hive::crypto::PrivateKey::load(path);
  if (!key) {
    hive::log::error("the private key is not reloaded; the old connection stays", {{"reason", key.error().message}});
    return false;
  }
  hive::log::info("reloading the private key; other settings need a restart",
                  {{"file", path}, {"key", key->public_key().fingerprint()}});
  return true;
}

// What `systemctl status` shows.
std::string status_line(const hive::agent::TunnelStatus& status) {
  using hive::agent::TunnelState;
  switch (status.state) {
    case TunnelState::connecting:
      return fmt::format("connecting to {}", status.gateway.to_string());
    case TunnelState::connected:
      return fmt::format("connected to {}", status.gateway.to_string());
    case TunnelState::waiting:
      return fmt::format("not connected: {}; next try in {:.0f} s", status.last_error.message,
                         std::chrono::duration<double>(status.retry_in).count());
    case TunnelState::stopped:
      return "stopping";
  }
  return {};
}

// What the tunnel is at, for the service manager: told at once, and again by the watchdog's thread if that was lost.
class StatusBoard {
 public:
  explicit StatusBoard(const hive::net::ServiceManager& manager) : manager_(manager) {}

  void put(std::string text) {
    std::lock_guard lock(mutex_);
    text_ = std::move(text);
    manager_.status(text_);
  }
  std::string text() {
    std::lock_guard lock(mutex_);
    return text_;
  }

 private:
  const hive::net::ServiceManager& manager_;
  std::mutex mutex_;
  std::string text_ = "starting";
};

void wait_for_end(const sigset_t& signals, const std::function<void()>& reload) {
  for (;;) {
    int signal = 0;
    if (::sigwait(&signals, &signal) != 0) continue;
    if (signal != SIGHUP) {
      hive::log::info("stopping", {{"signal", signal == SIGTERM ? "SIGTERM" : "SIGINT"}});
      return;
    }
    reload();
  }
}

int run(const std::string& config_path) {
  const hive::net::ServiceManager manager = hive::net::ServiceManager::of_this_process();
  // Vault may be asked for secrets while the configuration is read.
  ::signal(SIGPIPE, SIG_IGN);
  auto config = hive::config::load_agent_config(config_path, secret_sources());
  if (!config) {
    fmt::print(stderr, "{}\n", config.error().message);
    return bad_configuration;
  }
  hive::log::set_level(config->log_level);

  // Whoever started us may have ignored it, and then the exit statuses of commands would be lost.
  ::signal(SIGCHLD, SIG_DFL);
  sigset_t signals = handled_signals();
  ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  // Few threads allocate here; one heap for each of them would cost more memory than it saves time.
  ::mallopt(M_ARENA_MAX, 2);

  // Starting a program can hang as long as its file system does; dialling must go on meanwhile.
  hive::net::Runtime dialling(0, 1);
  StatusBoard board(manager);
  hive::net::Runtime runtime(1, 2);
  hive::net::Worker& worker = runtime.worker(0);
  auto agent = hive::agent::Agent::create(runtime, worker, *config);
  if (!agent) {
    fmt::print(stderr, "{}\n", agent.error().message);
    return bad_configuration;
  }
  hive::Result<std::shared_ptr<hive::agent::Tunnel>> tunnel = hive::agent::Tunnel::create(
      dialling, worker, *config,
      {.on_connected =
           [&](std::shared_ptr<hive::net::ssh::LineChannel> channel) {
             (*agent)->serve(std::move(channel), [&] { (*tunnel)->useful_exchange(); });
           },
       .on_state = [&](const hive::agent::TunnelStatus& status) { board.put(status_line(status)); }});
  if (!tunnel) {
    fmt::print(stderr, "{}: {}\n", config_path, tunnel.error().message);
    return bad_configuration;
  }
  hive::log::info("agent starts", {{"agent_id", config->agent_id}, {"version", HIVE_VERSION}});
  hive::net::Timer trim;
  worker.post([&] {
    (*tunnel)->start();
    trim = worker.schedule(start_phase, [] { hive::agent::release_start_code(); });
  });
  runtime.start();
  // The configuration is sound and the first try is on its way. Whether a gateway answers is not up to this machine.
  manager.ready(board.text());
  hive::net::Watchdog watchdog(manager, {&worker}, [&board] { return board.text(); });

  wait_for_end(signals, [&] {
    manager.reloading();
    if (config->private_key.empty()) {
      if (check_new_key(config->private_key_path)) worker.post([&] { (*tunnel)->renew(); });
    } else if (auto key = read_new_key(config_path)) {
      worker.post([&tunnel, key = *std::move(key)]() mutable {
        (*tunnel)->use_private_key(std::move(key));
        (*tunnel)->renew();
      });
    }
    manager.ready(board.text());
  });
  manager.stopping();
  watchdog.stop_asking();
  hive::agent::EndLimit limit(end_limit);
  std::promise<void> stopped;
  worker.post([&] {
    (*agent)->stop([&] {
      (*tunnel)->stop();
      // Behind what closing the channel has posted.
      worker.post([&] { stopped.set_value(); });
    });
  });
  stopped.get_future().wait();
  dialling.stop();
  runtime.stop();
  trim.cancel();
  tunnel->reset();
  agent->reset();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::span<char*> words(argv + 1, argc > 0 ? static_cast<size_t>(argc - 1) : 0);
  const std::string_view command = words.empty() ? std::string_view() : words.front();
  if (command == "doctor") return hive::agent::doctor_command(words.subspan(1), secret_sources());
  if (command == "completion") return hive::agent::completion_command(words.subspan(1));
  auto options = parse_options(argc, argv);
  if (!options) {
    fmt::print(stderr, "myrmex-agent: {}\nSee `myrmex-agent --help`.\n", options.error().message);
    return bad_usage;
  }
  if (options->help) {
    fmt::print("{}", help_text);
    return 0;
  }
  if (options->version) {
    fmt::print("myrmex-agent {}\n", HIVE_VERSION);
    return 0;
  }
  if (options->check) return check(*options->check, options->json);
  return run(options->config);
}
