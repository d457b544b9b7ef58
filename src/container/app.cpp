#include "container/app.h"

#include <cerrno>
#include <cstdlib>
#include <memory>
#include <string_view>

#include <CLI/CLI.hpp>

#include "base/strings.h"
#include "container/commands.h"
#include "container/completion.h"
#include "container/names.h"

namespace hive::container {

namespace {

constexpr const char* version_line = "hive-container " HIVE_VERSION;

constexpr const char* main_footer = R"(Examples:
  hive-container create iris
  hive-container create iris --agent iris --gateway 10.42.0.1:2222 --url https://10.42.0.1:8080 --join-token-file token
  hive-container start iris
  hive-container run iris -- systemctl is-active multi-user.target
  hive-container list -o json

A container is named by its agent ("iris") or in full ("h-iris").

Exit codes:
  0  success                        4  no such container, or it does not run
  1  other error                    5  hive-priv does not answer
  2  wrong command line           130  cancelled
  3  refused: by hive-priv, or by the check of the root before a start
`run` ends as its command does. See docs/containers.md.)";

constexpr const char* create_footer =
    R"(The system comes from debootstrap (the host's release), or from --tree or --tarball. It stays as a template; the
container's root is a copy of it, and from the second start on what a guest changes there is thrown away at every stop.
What lasts lies in /var/lib/hyperhive/agents/NAME: state, work, harness, claude.

With --agent a myrmex-agent is installed inside. Its key is made and enrolled now: with --join-token-file (or
MYRMEX_JOIN_TOKEN), or with an admin's own MYRMEX_TOKEN.

Examples:
  hive-container create iris --memory 2G --cpu 100%
  hive-container create iris --tree /srv/roots/debian-12
  hive-container create --agent iris --gateway 10.42.0.1:2222 --url https://10.42.0.1:8080 --cacert gateway.pem \
    --join-token-file token --agent-profile allowed.json --start)";

constexpr const char* destroy_footer = R"(Removes the container, its root and its template. Kept: the agent's folders
(/var/lib/hyperhive/agents/NAME) with every salvage, and every old root (/var/lib/nixos-containers/NAME.pre-ephemeral-*).)";

/// Everything that lives as long as the parser: the callbacks refer to it.
struct Program {
  Program(const Layout& layout, cli::Output& output) : session{layout, output, {}} {}

  CLI::App app{"Runs agents in containers whose root is thrown away at every stop.", "hive-container"};
  Session session;
  ExitCode exit_code = ExitCode::success;
  CreateOptions create;
  std::string create_name;
  std::string packages;
  bool start_after = false;
  std::vector<std::string> names;
  std::string name;
  RunOptions run;
  LogOptions logs;
  DestroyOptions destroy;
  std::string shell;
  std::vector<std::string> completion_words;
};

void add_names(CLI::App* command, Program& program) {
  command->add_option("container", program.names, "one container or several")->required()->type_name("NAME");
}

void add_name(CLI::App* command, std::string& name) {
  command->add_option("container", name, "the container")->required()->type_name("NAME");
}

ExitCode create(Program& program) {
  CreateOptions& options = program.create;
  const std::string& word = program.create_name.empty() ? options.agent.id : program.create_name;
  if (word.empty()) return program.session.fail_with({ErrorCode::invalid_argument, "create: no name was given"});
  auto name = container_of(word);
  if (!name) return program.session.fail_with(name.error());
  options.name = *name;
  for (std::string_view package : split(program.packages, ',')) {
    if (!package.empty()) options.source.packages.emplace_back(package);
  }
  return run_create(program.session, options, program.start_after);
}

void add_create(Program& program) {
  CLI::App* command = program.app.add_subcommand("create", "make a container");
  CreateOptions& options = program.create;
  command->add_option("container", program.create_name, "its name: 1 to 9 characters of a-z 0-9 -")->type_name("NAME");
  auto* tree = command->add_option("--tree", options.source.tree, "copy the system in this folder")->type_name("DIR");
  auto* tarball = command->add_option("--tarball", options.source.tarball, "unpack the system from this file")
                      ->type_name("FILE")
                      ->excludes(tree);
  command->add_option("--suite", options.source.suite, "release for debootstrap (the host's)")
      ->type_name("SUITE")
      ->excludes(tree)
      ->excludes(tarball);
  command->add_option("--mirror", options.source.mirror, "mirror for debootstrap")
      ->type_name("URL")
      ->excludes(tree)
      ->excludes(tarball);
  command->add_option("--packages", program.packages, "further packages for debootstrap, with commas between")
      ->type_name("LIST")
      ->excludes(tree)
      ->excludes(tarball);
  command->add_option("--uid", options.uid, "uid of the agent's user (the first free one from 20000)")
      ->check(CLI::Range(1000, 65533).description(""))
      ->type_name("UID");
  command->add_option("--bridge", options.bridge, "the bridge of the containers (hive0)")->type_name("NAME");
  command->add_option("--gateway-ip", options.gateway_ip, "the host's address on it (10.42.0.1)")->type_name("ADDRESS");
  command->add_option("--memory", options.limits.memory, "at most so much memory (4G)")->type_name("SIZE");
  command->add_option("--cpu", options.limits.cpu, "at most so much of a core (200%)")->type_name("PERCENT");
  command->add_flag("--private-users", options.private_users, "make its root nobody on the host (PRIVATE_USERS=pick)");
  auto* agent =
      command->add_option("--agent", options.agent.id, "install a myrmex-agent with this id")->type_name("ID");
  command->add_option("--gateway", options.agent.gateway, "where it dials (the host of --url, port 2222)")
      ->type_name("HOST:PORT")
      ->needs(agent);
  command->add_option("--url", options.agent.url, "the gateway's URL, to enrol at (MYRMEX_URL)")
      ->type_name("URL")
      ->needs(agent);
  command->add_option("--cacert", options.agent.ca_certificate, "certificate to trust, PEM (MYRMEX_CACERT)")
      ->type_name("FILE")
      ->needs(agent);
  command->add_option("--join-token-file", options.agent.join_token_file, "file with the join token, or -")
      ->type_name("FILE")
      ->needs(agent);
  command->add_option("--agent-profile", options.agent.profile, "what it may run: JSON array of allowed_commands")
      ->type_name("FILE")
      ->needs(agent);
  command->add_option("--otlp", options.forwarding.endpoint, "forward its journal to this OpenTelemetry collector")
      ->type_name("URL");
  command->add_flag("--start", program.start_after, "start it afterwards");
  command->footer(create_footer);
  command->callback([&program] { program.exit_code = create(program); });
}

void add_lifecycle(Program& program) {
  using Verb = ExitCode (*)(Session&, const std::vector<std::string>&);
  for (auto [word, text, verb] : {std::tuple<const char*, const char*, Verb>{"start", "start containers", run_start},
                                  {"stop", "stop containers", run_stop},
                                  {"restart", "stop and start containers", run_restart}}) {
    CLI::App* command = program.app.add_subcommand(word, text);
    add_names(command, program);
    command->callback([&program, verb = verb] { program.exit_code = verb(program.session, program.names); });
  }
  CLI::App* status = program.app.add_subcommand("status", "how a container is; exit code 4 when it does not run");
  add_name(status, program.name);
  status->callback([&program] { program.exit_code = run_status(program.session, program.name); });
  program.app.add_subcommand("list", "the containers of this host")->callback([&program] {
    program.exit_code = run_list(program.session);
  });
  CLI::App* destroy = program.app.add_subcommand("destroy", "remove a container; keeps what its agent made");
  add_name(destroy, program.destroy.name);
  destroy->add_flag("--yes", program.destroy.yes, "do not ask");
  destroy->footer(destroy_footer);
  destroy->callback([&program] { program.exit_code = run_destroy(program.session, program.destroy); });
  CLI::App* salvages = program.app.add_subcommand("salvages", "what was saved from old roots, and the kept roots");
  add_name(salvages, program.name);
  salvages->callback([&program] { program.exit_code = run_salvages(program.session, program.name); });
}

void add_inside(Program& program) {
  CLI::App* run = program.app.add_subcommand("run", "run a command inside, and end as it does");
  add_name(run, program.run.name);
  run->add_option("--user", program.run.user, "as this user of the container (root)")->type_name("USER");
  run->add_option("command", program.run.command, "the command and its arguments, behind --")
      ->required()
      ->type_name("COMMAND");
  run->callback([&program] { program.exit_code = run_command(program.session, program.run); });

  CLI::App* logs = program.app.add_subcommand("logs", "the journal of a container");
  add_name(logs, program.logs.name);
  logs->add_option("-n,--lines", program.logs.lines, "the last so many lines (50)")->type_name("COUNT");
  logs->add_option("--unit", program.logs.unit, "only this unit of the container")->type_name("UNIT");
  logs->add_flag("-f,--follow", program.logs.follow, "go on with new lines");
  logs->add_flag("--host", program.logs.host, "what the host says about its starts and stops");
  logs->callback([&program] { program.exit_code = run_logs(program.session, program.logs); });
}

void add_own(Program& program) {
  CLI::App* completion = program.app.add_subcommand("completion", "print a completion script for a shell");
  completion->add_option("shell", program.shell, "bash, zsh or fish")
      ->check(CLI::IsMember({"bash", "zsh", "fish"}).description(""))
      ->required()
      ->type_name("SHELL");
  completion->footer("bash: source <(hive-container completion bash)");
  completion->callback([&program] { program.session.output.write(completion_script(program.shell)); });

  CLI::App* complete = program.app.add_subcommand("__complete", "words for the completion scripts")->group("");
  complete->add_option("words", program.completion_words, "the words of the command line so far");
  complete->callback([&program] {
    program.session.output.write(candidates(program.app, program.completion_words, program.session.layout));
  });
}

int usage_error(const Program& program, std::string_view message) {
  std::string path = "hive-container";
  if (auto commands = program.app.get_subcommands(); !commands.empty()) path += " " + commands.front()->get_name();
  program.session.output.note(fmt::format("hive-container: {}", escape_for_terminal(message)));
  program.session.output.note(fmt::format("See `{} --help`.", path));
  return static_cast<int>(ExitCode::usage);
}

int parse_and_run(Program& program, std::vector<std::string> words) {
  try {
    if (words.empty()) {
      program.session.output.write(program.app.help());
      return 0;
    }
    std::ranges::reverse(words);  // as CLI11 wants them
    program.app.parse(std::move(words));
    return static_cast<int>(program.exit_code);
  } catch (const CLI::CallForHelp&) {
    program.session.output.write(program.app.help());
    return 0;
  } catch (const CLI::CallForVersion&) {
    program.session.output.write(std::string(version_line) + "\n");
    return 0;
  } catch (const CLI::ParseError& error) {
    std::string_view message = error.what();
    return usage_error(program, message.substr(0, message.find('\n')));
  } catch (const std::exception& error) {
    return static_cast<int>(program.session.fail_with({ErrorCode::internal, error.what()}));
  }
}

}  // namespace

int run(std::vector<std::string> words, const Layout& layout, cli::Output& output) {
  auto program = std::make_unique<Program>(layout, output);
  const char* terminal = std::getenv("TERM");
  program->session.format.color = output.is_terminal() && std::getenv("NO_COLOR") == nullptr &&
                                  (terminal == nullptr || std::string_view(terminal) != "dumb");
  CLI::App& app = program->app;
  app.fallthrough();
  app.require_subcommand(1);
  app.set_help_flag("-h,--help", "explain the command");
  app.set_version_flag("-v,--version", version_line, "print the version");
  app.footer(main_footer);
  app.get_formatter()->column_width(26);
  app.add_option_function<std::string>(
         "-o,--output", [&](const std::string& name) { program->session.format.json = name == "json"; }, "text or json")
      ->check(CLI::IsMember({"text", "json"}).description(""))
      ->type_name("FORMAT");
  app.add_flag_callback("--no-color", [&] { program->session.format.color = false; }, "no colours (NO_COLOR)");
  add_create(*program);
  add_lifecycle(*program);
  add_inside(*program);
  add_own(*program);
  const int code = parse_and_run(*program, std::move(words));
  const int error = output.write_error();
  if (error == 0) return code;
  // A reader that had enough, as in `hive-container list | head -1`, needs no message.
  if (error != EPIPE) output.note("hive-container: " + system_error(error, "standard output").message);
  return code == 0 ? static_cast<int>(ExitCode::error) : code;
}

}  // namespace hive::container
