#include "cli/app.h"

#include <array>
#include <charconv>
#include <cstdio>
#include <memory>

#include <CLI/CLI.hpp>

#include "base/strings.h"
#include "cli/audit_commands.h"
#include "cli/call_command.h"
#include "cli/command_line.h"
#include "cli/completion.h"
#include "cli/context.h"
#include "cli/doctor.h"
#include "cli/enrolment_commands.h"
#include "cli/fan_out_options.h"
#include "cli/fleet_commands.h"
#include "cli/gate_commands.h"
#include "cli/mcp_command.h"
#include "cli/upstream_commands.h"

namespace hive::cli {

namespace {

constexpr const char* version_line = "myrmex " HIVE_VERSION;

constexpr const char* main_footer = R"(Examples:
  myrmex status
  myrmex call edge-1__get_metrics
  myrmex call edge-1__run_command name=df args=-h
  myrmex approvals
  myrmex bootstrap --agent-id edge-2
  myrmex doctor

Exit codes:
  0  success                        5  gateway or agent cannot be reached
  1  other error                    6  waits for the approval of a second person
  2  wrong command line             7  not authenticated
  3  denied, nothing ran            8  cancelled, expired or unknown outcome
  4  it ran and failed            130  interrupted by Ctrl-C

`myrmex help COMMAND` explains a command. Options stand before or after it.)";

constexpr const char* call_footer =
    R"(key=value words become the tool's arguments, typed by its schema; key:=JSON is taken as JSON; a key that
comes again makes a list.

Examples:
  myrmex call edge-1__get_metrics -o json | jq .cpu_usage_percent
  myrmex call edge-1__run_command name=systemctl args=restart args=nginx
  myrmex call edge-1__run_command --arguments '{"name": "df", "args": ["-h"]}'
  myrmex call --agent edge-1 --tool read_logs lines=20
  myrmex call edge-1__run_command name=sleep args=60 --timeout 90 --progress
  myrmex call edge-1__get_metrics --wait-online 5m
  myrmex call edge-1__run_command name=systemctl args=restart args=nginx --wait
  myrmex call --tag web run_command name=uptime --group
  myrmex call --all get_metrics -o json | jq -c '[.agent, .outcome]'
  myrmex call --agents 'db-*' run_command name=systemctl args=restart args=app --concurrency 1 --stop-after 1

For many agents the exit code is that of the worst end: 8, then 4, 3, 5, 6, 0.)";

constexpr const char* gateway_footer =
    "Which gateway, and how the output looks: --url, --token-file, --profile, -o json and the other options of\n"
    "`myrmex --help`.";

/// Everything that lives as long as the parser: the callbacks refer to it.
struct Program {
  Program(const Environment& environment, Output& output_stream)
      : context{environment, output_stream, GlobalOptions{}, OutputOptions{}} {}

  CLI::App app{"Operates the servers of a hive through its gateway.", "myrmex"};
  Context context;
  int exit_code = 0;
  CallOptions call;
  AgentFilter agents;
  std::string tools_agent;
  std::string shell;
  std::string completion_kind;
  std::vector<std::string> completion_words;
  std::vector<std::string> help_words;
};

Result<std::chrono::milliseconds> parse_seconds(const std::string& text) {
  double seconds = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (error != std::errc() || end != text.data() + text.size() || !(seconds >= 0.001 && seconds <= 86400)) {
    return fail(ErrorCode::invalid_argument, "--timeout: {} is not a number of seconds from 0.001 to 86400",
                quote(text));
  }
  return std::chrono::milliseconds(static_cast<long long>(seconds * 1000));
}

/// "30", "30s", "5m" or "1h".
Result<std::chrono::seconds> parse_patience(std::string_view text) {
  std::string_view digits = text;
  std::int64_t unit = 1;
  for (const auto& [suffix, seconds] : {std::pair('s', 1), std::pair('m', 60), std::pair('h', 3600)}) {
    if (!digits.ends_with(suffix)) continue;
    digits.remove_suffix(1);
    unit = seconds;
    break;
  }
  std::optional<std::int64_t> number = parse_int64(digits);
  constexpr std::int64_t longest = 86'400;
  if (!number || *number < 1 || *number > longest || *number * unit > longest) {
    return fail(ErrorCode::invalid_argument, "--wait-online: {} is not a time such as 30s, 5m or 1h, at most a day",
                quote(text));
  }
  return std::chrono::seconds(*number * unit);
}

bool wants_color(const Program& program) {
  const Environment& environment = program.context.environment;
  return program.context.output.is_terminal() && !environment("NO_COLOR") && environment("TERM") != "dumb";
}

void add_global_options(Program& program) {
  CLI::App& app = program.app;
  GlobalOptions& options = program.context.options;
  OutputOptions& format = program.context.format;
  app.add_option("--url", options.url, "the gateway (MYRMEX_URL; https://localhost:8080)")->type_name("URL");
  app.add_option("--token-file", options.token_file, "file with the token, readable by you alone")->type_name("FILE");
  app.add_option("--token", options.token, "the token itself; prefer MYRMEX_TOKEN: this one shows in the process list")
      ->type_name("TOKEN");
  app.add_option("--profile", options.profile, "profile of the configuration file (MYRMEX_PROFILE; default)")
      ->type_name("NAME");
  app.add_option("--cacert", options.ca_certificate_path, "certificate to trust, PEM (MYRMEX_CACERT)")
      ->type_name("FILE");
  app.add_flag("--insecure", options.insecure, "do not check the gateway's certificate");
  app.add_option_function<std::string>(
         "-o,--output", [&format](const std::string& name) { format.json = name == "json"; }, "text or json")
      ->check(CLI::IsMember({"text", "json"}).description(""))
      ->type_name("FORMAT");
  app.add_flag_callback("--no-color", [&format] { format.color = false; }, "no colours (NO_COLOR)");
  app.add_option_function<std::string>(
         "--timeout",
         [&options](const std::string& text) {
           auto timeout = parse_seconds(text);
           if (!timeout) throw CLI::ValidationError(timeout.error().message, CLI::ExitCodes::ValidationError);
           options.timeout = *timeout;
         },
         "how long to wait (45); for call also how long the tool may run")
      ->type_name("SECONDS");
}

std::string check_sort_key(const std::string& text) {
  std::string_view key = text;
  if (key.starts_with('-')) key.remove_prefix(1);
  for (std::string_view known : {"id", "address", "os", "connected_at", "offline_since"}) {
    if (key == known) return "";
  }
  return fmt::format("{} is not one of id, address, os, connected_at, offline_since, or one of them behind a -",
                     quote(text));
}

void add_agents_command(Program& program) {
  CLI::App* agents = program.app.add_subcommand("agents", "the agents, with tags, ports and services");
  AgentFilter& filter = program.agents;
  agents->add_option("--status", filter.status, "online, offline, never_connected, flapping, or stale: not online")
      ->check(CLI::IsMember({"online", "offline", "never_connected", "flapping", "stale"}).description(""))
      ->type_name("STATUS");
  agents->add_option("--tag", filter.tag, "only agents with this tag")->type_name("TAG");
  agents->add_option("--match", filter.id, "only agents whose id matches; * stands for any characters")
      ->type_name("PATTERN");
  agents
      ->add_option("--search", filter.search,
                   "only agents with this text in id, address, system, version, tags or services")
      ->type_name("TEXT");
  agents->add_option("--sort", filter.sort, "id, address, os, connected_at or offline_since; -KEY: the other way round")
      ->check(check_sort_key)
      ->type_name("KEY");
  agents->add_option("--limit", filter.limit, "at most so many agents")
      ->check(CLI::Range(1, 1'000'000).description(""))
      ->type_name("COUNT");
  agents->require_subcommand(0, 1);
  agents->callback([agents, list = interruptible(program.context, program.exit_code,
                                                 [&filter](Context& context) { return run_agents(context, filter); })] {
    if (agents->get_subcommands().empty()) list();
  });
}

void add_fleet_commands(Program& program) {
  CLI::App& app = program.app;
  app.add_subcommand("status", "agents and upstream servers at a glance")
      ->callback(interruptible(program.context, program.exit_code, run_status));
  add_agents_command(program);
  add_upstream_commands(app, program.context, program.exit_code);
  CLI::App* tools = app.add_subcommand("tools", "the tools that can be called");
  tools->add_option("--agent", program.tools_agent, "only the tools of this agent")->type_name("AGENT");
  tools->callback(interruptible(program.context, program.exit_code,
                                [&program](Context& context) { return run_tools(context, program.tools_agent); }));

  CLI::App* call = app.add_subcommand("call", "call a tool, on one agent or on many");
  CallOptions& options = program.call;
  add_call_words(*call, options.call);
  call->add_flag("--progress,--follow", options.progress, "print the output while the tool runs");
  call->add_flag("--raw", options.raw, "the text as it came, byte for byte; not to a terminal");
  call->add_option_function<std::string>(
          "--wait-online",
          [&options](const std::string& text) {
            auto wait = parse_patience(text);
            if (!wait) throw CLI::ValidationError(wait.error().message, CLI::ExitCodes::ValidationError);
            options.wait_online = *wait;
          },
          "when the agent is offline, wait for it: 30s, 5m; the gateway's max_agent_wait_seconds is the limit")
      ->type_name("TIME");
  add_wait_option(
      *call, options.wait,
      "when it waits for an approval, wait for that and for the result; --wait=SECONDS: no longer than that");
  add_fan_out_options(*call, options.fan_out);
  for (CLI::App* command : app.get_subcommands([](CLI::App*) { return true; }))
    command->footer(gateway_footer);
  call->footer(std::string(call_footer) + "\n\n" + gateway_footer);
  call->callback(interruptible(program.context, program.exit_code,
                               [&options](Context& context) { return run_call(context, options); }));
}

void add_own_commands(Program& program) {
  CLI::App& app = program.app;
  // Without orderly interruption: it changes nothing, and a name service may hold it up.
  app.add_subcommand("doctor", "find out why the gateway cannot be reached")->callback([&program] {
    program.exit_code = static_cast<int>(run_doctor(program.context));
  });

  CLI::App* completion = app.add_subcommand("completion", "print a completion script for a shell");
  completion->add_option("shell", program.shell, "bash, zsh or fish")
      ->check(CLI::IsMember({"bash", "zsh", "fish"}).description(""))
      ->required()
      ->type_name("SHELL");
  completion->footer(
      "bash: source <(myrmex completion bash)\nzsh:  source <(myrmex completion zsh)\nfish: myrmex completion fish | "
      "source");
  completion->callback([&program] { program.context.output.write(completion_script(program.shell)); });

  app.add_subcommand("version", "print the version")->callback([&program] {
    program.context.output.write(program.context.format.json ? "{\"version\":\"" HIVE_VERSION "\"}\n"
                                                             : std::string(version_line) + "\n");
  });

  CLI::App* help = app.add_subcommand("help", "explain a command");
  help->add_option("command", program.help_words, "the command")->type_name("COMMAND");
  help->callback([&program] {
    const CLI::App* shown = &program.app;
    std::string path = "myrmex";
    for (const std::string& word : program.help_words) {
      auto found = shown->get_subcommands([&word](const CLI::App* command) { return command->get_name() == word; });
      if (found.empty()) {
        program.exit_code = static_cast<int>(
            program.context.fail_with({ExitCode::usage, fmt::format("help: there is no command {}", quote(word))}));
        return;
      }
      shown = found.front();
      path += " " + word;
    }
    // App::help() would describe `help` itself, the command that was parsed.
    program.context.output.write(
        shown->get_formatter()->make_help(shown, shown == &program.app ? "" : path, CLI::AppFormatMode::Normal));
  });

  CLI::App* complete = app.add_subcommand("__complete", "names for the completion scripts")->group("");
  complete->add_option("kind", program.completion_kind, "tools, agents or words")->required();
  complete->add_option("words", program.completion_words, "the words of the command line so far");
  complete->callback([&program] {
    program.exit_code =
        static_cast<int>(run_complete(program.context, program.app, program.completion_kind, program.completion_words));
  });
}

/// The last command that was recognised, for "see ... --help".
std::string command_path(const CLI::App& app) {
  std::string path = "myrmex";
  const CLI::App* at = &app;
  while (!at->get_subcommands().empty()) {
    at = at->get_subcommands().front();
    path += " " + at->get_name();
  }
  return path;
}

int usage_error(Program& program, std::string_view message) {
  program.context.output.note(fmt::format("myrmex: {}", escape_for_terminal(message)));
  program.context.output.note(fmt::format("See `{} --help`.", command_path(program.app)));
  return static_cast<int>(ExitCode::usage);
}

int parse_and_run(Program& program, std::vector<std::string> words) {
  std::vector<KnownOption> options = all_options(program.app);
  try {
    if (words.empty()) {
      program.context.output.write(program.app.help());
      return 0;
    }
    words = with_current_spelling(words, options);
    if (auto known = check_command(program.app, words, options); !known) {
      return usage_error(program, known.error().message);
    }
    std::ranges::reverse(words);  // as CLI11 wants them
    program.app.parse(std::move(words));
    if (program.app.get_subcommands().empty()) return usage_error(program, "no command");
    return program.exit_code;
  } catch (const CLI::CallForHelp&) {
    program.context.output.write(program.app.help());
    return 0;
  } catch (const CLI::CallForVersion&) {
    program.context.output.write(std::string(version_line) + "\n");
    return 0;
  } catch (const CLI::ExtrasError&) {
    return usage_error(program, unexpected_word_message(program.app.remaining(true), options));
  } catch (const CLI::ParseError& error) {
    std::string_view message = error.what();
    return usage_error(program, message.substr(0, message.find('\n')));
  } catch (const std::exception& error) {
    return static_cast<int>(program.context.fail_with({ExitCode::error, escape_for_terminal(error.what())}));
  }
}

/// Results that did not reach their reader must not look like success.
int checked_exit_code(int exit_code, Output& output) {
  // The audit commands write through stdio.
  bool stdio_failed = std::fflush(stdout) != 0 || std::ferror(stdout) != 0;
  int error = output.write_error();
  if (error == 0 && !stdio_failed) return exit_code;
  // A reader that had enough, as in `myrmex tools | head -1`, needs no message.
  if (error != 0 && error != EPIPE) output.note("myrmex: " + system_error(error, "standard output").message);
  return exit_code == 0 ? static_cast<int>(ExitCode::error) : exit_code;
}

}  // namespace

int run(std::vector<std::string> words, const Environment& environment, Output& output) {
  auto program = std::make_unique<Program>(environment, output);
  program->context.format.color = wants_color(*program);
  program->app.fallthrough();
  program->app.require_subcommand(0, 1);
  program->app.set_help_flag("-h,--help", "explain the command");
  program->app.set_version_flag("-v,--version", version_line, "print the version");
  program->app.footer(main_footer);
  program->app.get_formatter()->column_width(26);
  add_global_options(*program);
  add_fleet_commands(*program);
  add_gate_commands(program->app, program->context, program->exit_code);
  add_enrolment_commands(program->app, program->context, program->exit_code);
  add_audit_commands(program->app, program->exit_code, program->context);
  add_mcp_command(program->app, program->context, program->exit_code);
  add_own_commands(*program);
  return checked_exit_code(parse_and_run(*program, std::move(words)), output);
}

}  // namespace hive::cli
