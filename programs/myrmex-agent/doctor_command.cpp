#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

#include <fmt/format.h>
#include <unistd.h>

#include "agent/doctor.h"
#include "base/log.h"
#include "base/strings.h"
#include "subcommands.h"

namespace hive::agent {

namespace {

constexpr std::string_view help_text =
    R"(myrmex-agent doctor: why the agent does not connect, step by step

Usage:
  myrmex-agent doctor [--config FILE] [--gateway HOST[:PORT]] [--timeout SECONDS] [-o text|json]

Looks at the configuration, the allowlist, the key and the known host keys, then takes the way to each gateway that the
agent takes: name, TCP, proxy, SSH, host key, login, a question with its answer, and the clock. Every step is ok, a
warning, failed, or skipped because it was not reached, with the reason and what to do.

It connects with the agent's id and key, but over a channel of its own: a running agent keeps its tunnel. Nothing is
written, not even a new host key. Run it as the agent's user.

Options:
  --config FILE           configuration (default: agent_config.json in the working directory)
  --gateway HOST[:PORT]   look at this gateway instead of those of the configuration
  --timeout SECONDS       how long a step may take, 1 to 60 (default: 5)
  -o, --output FORMAT     text or json (default: text)
  --help                  print this text

Exit codes:
  0  everything is fine
  1  a warning, or something on this machine is wrong
  2  the command line is wrong
  3  a gateway refuses the key, or shows another host key than expected
  5  a gateway, or the proxy on the way, cannot be reached

Examples:
  myrmex-agent doctor --config /etc/myrmex-agent/agent_config.json
  runuser -u myrmex-agent -- myrmex-agent doctor --config /etc/myrmex-agent/agent_config.json
  myrmex-agent doctor --config agent_config.json --gateway gateway-2.example.com:2222 -o json
)";

struct CommandLine {
  DoctorOptions options;
  bool json = false;
  bool help = false;
};

std::unexpected<Error> wrong(std::string_view text) {
  return fail(ErrorCode::invalid_argument, "{}", text);
}

Result<void> apply(CommandLine& line, std::string_view name, const std::string& value) {
  if (name == "--config") {
    line.options.config_path = value;
  } else if (name == "--gateway") {
    line.options.gateway = TRY_CONTEXT("--gateway", config::parse_gateway_address(value));
  } else if (name == "--timeout") {
    const auto seconds = parse_int64(value);
    if (!seconds || *seconds < 1 || *seconds > 60) return wrong("--timeout needs a number of seconds from 1 to 60");
    line.options.step_timeout = std::chrono::seconds(*seconds);
  } else {
    if (value != "json" && value != "text") return wrong("--output needs text or json");
    line.json = value == "json";
  }
  return {};
}

Result<CommandLine> parse(std::span<char* const> words) {
  CommandLine line;
  line.options.config_path = "agent_config.json";
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string_view word = words[i];
    if (word == "--help" || word == "-h") {
      line.help = true;
      return line;
    }
    const size_t equals = word.starts_with("--") ? word.find('=') : std::string_view::npos;
    std::string_view name = word.substr(0, equals);
    if (name == "-c") name = "--config";
    if (name == "-o") name = "--output";
    if (name != "--config" && name != "--gateway" && name != "--timeout" && name != "--output") {
      return fail(ErrorCode::invalid_argument, "unknown option {}", quote(word));
    }
    if (equals == std::string_view::npos && i + 1 >= words.size()) {
      return fail(ErrorCode::invalid_argument, "{} needs a value", name);
    }
    const std::string value(equals == std::string_view::npos ? std::string_view(words[++i]) : word.substr(equals + 1));
    TRY(apply(line, name, value));
  }
  return line;
}

}  // namespace

int doctor_command(std::span<char* const> words, const config::SecretSources& sources) {
  auto line = parse(words);
  if (!line) {
    fmt::print(stderr, "myrmex-agent doctor: {}\nSee `myrmex-agent doctor --help`.\n", line.error().message);
    return static_cast<int>(DoctorExit::usage);
  }
  if (line->help) {
    fmt::print("{}", help_text);
    return 0;
  }
  std::signal(SIGPIPE, SIG_IGN);
  // What it has to say stands in the report.
  log::set_level(log::Level::error);
  line->options.sources = &sources;
  const DoctorReport report = examine(line->options);
  const char* no_colour = std::getenv("NO_COLOR");
  const bool colour = ::isatty(STDOUT_FILENO) == 1 && (no_colour == nullptr || *no_colour == '\0');
  const std::string text = line->json ? as_json(report) : as_text(report, colour);
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0) {
    return static_cast<int>(DoctorExit::problem);
  }
  return static_cast<int>(report.exit);
}

}  // namespace hive::agent
