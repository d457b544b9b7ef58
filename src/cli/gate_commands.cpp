#include "cli/gate_commands.h"

#include <memory>

#include <CLI/CLI.hpp>

#include "base/strings.h"
#include "cli/approval_commands.h"
#include "cli/approval_watch.h"
#include "cli/config_commands.h"
#include "cli/explain_command.h"
#include "cli/policy_test.h"
#include "cli/token_commands.h"

namespace hive::cli {

namespace {

constexpr const char* approvals_footer =
    R"(Without a command: the requests that wait. An ID may be cut to a beginning that no other request has.

Examples:
  myrmex approvals
  myrmex approvals show 3f2a
  myrmex approvals approve 3f2a --comment "change 4711"
  myrmex approvals watch -o json
  myrmex approvals result 3f2a --wait

Nobody approves what they asked for themselves, by whatever credential.)";

constexpr const char* approve_footer =
    R"(Shows the request with all its arguments and asks. What is sent names the digest of what was shown, so that nothing
else can be approved. For programs: --yes, and --digest where the arguments are longer than lists show (4096 bytes).)";

constexpr const char* result_footer =
    R"(Prints and ends as `myrmex call` would have. Exit code 6: it still waits, or runs.)";

constexpr const char* explain_footer =
    R"(Nothing runs; the agent is asked by a dry run where the tool has one. Exit code 0: it would run, 3: it would be denied, 6: it
would wait for an approval, 8: it cannot be told.

Examples:
  myrmex explain edge-1__run_command name=systemctl args=restart args=nginx
  myrmex explain edge-1__get_metrics --as-role operator --as-identity alice
  myrmex explain edge-2__read_logs --as-role operator --as-agents 'edge-*' --as-tools 'get_*')";

constexpr const char* policy_test_footer =
    R"(A line a case: a call, "->", and what the gates must say. "as" says for whom, until the next "as":

  # who may restart what
  as role=operator identity=alice
  edge-1__run_command name=systemctl args=restart args=nginx -> ask
  edge-1__get_metrics                                        -> allow
  as token=scoped_tokens[0]
  edge-2__run_command name=uptime                            -> deny scope

With --config the cases are held against a configuration file, offline; its secrets are not looked up. Without it they go to
the gateway. Exit code 0: all as expected, 1: some not.)";

constexpr const char* token_footer =
    R"(Examples:
  myrmex token new --role operator --identity alice
  myrmex token hash < token.txt

The gateway's configuration takes the hash in the place of the token, so that whoever reads it cannot use it.)";

constexpr const char* config_footer =
    R"(Without a command: show. Secrets stand as placeholders; references such as env:NAME stand as they are.

Examples:
  myrmex config show > gateway.json
  myrmex config apply gateway.json)";

constexpr const char* config_apply_footer =
    R"(The file is checked like a start, and is in force or changes nothing. Placeholders of `show` may stay: the gateway
keeps the secrets that it has. While calls of tier admin need a second person (require_approval_tiers), the settings that
say who may do what and how often are changed on the gateway's machine alone.

Example:
  myrmex config show > gateway.json; $EDITOR gateway.json; myrmex config apply gateway.json)";

/// What the callbacks refer to; each of them keeps it alive.
struct GateOptions {
  bool list_all = false;
  std::string show_id;
  DecideOptions approve;
  DecideOptions deny;
  DecideOptions withdraw;
  ResultOptions result;
  ExplainOptions explain;
  PolicyTestOptions policy_test;
  std::string token_role;
  std::string token_identity;
  bool force_token = false;
  std::string config_file;
};

using Shared = std::shared_ptr<GateOptions>;

struct Registration {
  Context& context;
  int& exit_code;
  Shared options;

  /// `command(context, options)` as a callback.
  template <class Command>
  [[nodiscard]] std::function<void()> callback(Command command) const {
    return interruptible(context, exit_code,
                         [options = options, command](Context& context) { return command(context, *options); });
  }
};

void add_id(CLI::App& command, std::string& id) {
  command.add_option("id", id, "the request, or the beginning of its id")->required()->type_name("ID");
}

void add_decision(CLI::App& app, const char* name, const char* description, DecideOptions& options,
                  std::function<void()> callback) {
  CLI::App* command = app.add_subcommand(name, description);
  add_id(*command, options.id);
  command->add_option("--comment", options.comment, "why; it stands in the audit log")->type_name("TEXT");
  command->add_option("--digest", options.digest, "decide only if the request still has this digest")
      ->type_name("DIGEST");
  if (std::string_view(name) != "withdraw") command->add_flag("-y,--yes", options.yes, "do not ask");
  if (std::string_view(name) == "approve") command->footer(approve_footer);
  command->callback(std::move(callback));
}

void add_approvals(CLI::App& parent, const Registration& registration) {
  GateOptions& options = *registration.options;
  CLI::App* app = parent.add_subcommand("approvals", "the calls that wait for a second person");
  app->require_subcommand(0, 1);
  app->footer(approvals_footer);
  auto list_them = [](Context& context, const GateOptions& all) { return run_approvals_list(context, all.list_all); };
  // CLI11 runs the callback of a command also after that of a command below it.
  app->callback([app, run = registration.callback(list_them)] {
    if (app->get_subcommands().empty()) run();
  });
  app->add_flag("--all", options.list_all, "also those that are decided, as long as they are kept");

  CLI::App* list = app->add_subcommand("list", "the requests, newest first");
  list->add_flag("--all", options.list_all, "also those that are decided, as long as they are kept");
  list->callback(registration.callback(list_them));

  CLI::App* show = app->add_subcommand("show", "one request with every argument");
  add_id(*show, options.show_id);
  show->callback(registration.callback(
      [](Context& context, const GateOptions& all) { return run_approvals_show(context, all.show_id); }));

  add_decision(*app, "approve", "let the call run", options.approve,
               registration.callback([](Context& context, const GateOptions& all) {
                 return run_approvals_decide(context, ApprovalDecision::approve, all.approve);
               }));
  add_decision(*app, "deny", "refuse the call", options.deny,
               registration.callback([](Context& context, const GateOptions& all) {
                 return run_approvals_decide(context, ApprovalDecision::reject, all.deny);
               }));
  add_decision(*app, "withdraw", "take your own request back", options.withdraw,
               registration.callback([](Context& context, const GateOptions& all) {
                 return run_approvals_decide(context, ApprovalDecision::withdraw, all.withdraw);
               }));

  CLI::App* result = app->add_subcommand("result", "how the call of a request ended");
  add_id(*result, options.result.id);
  add_wait_option(*result, options.result.wait, "wait until it has ended; --wait=SECONDS: no longer than that");
  result->add_flag("--raw", options.result.raw, "the text as it came, byte for byte; not to a terminal");
  result->footer(result_footer);
  result->callback(registration.callback(
      [](Context& context, const GateOptions& all) { return run_approvals_result(context, all.result); }));

  CLI::App* watch = app->add_subcommand("watch", "print new requests and decisions until Ctrl-C");
  watch->callback(
      registration.callback([](Context& context, const GateOptions&) { return run_approvals_watch(context); }));
}

void add_explain(CLI::App& parent, const Registration& registration) {
  ExplainOptions& options = registration.options->explain;
  CLI::App* command = parent.add_subcommand("explain", "what each gate would say to a call, and which line decides");
  add_call_words(*command, options.call);
  AskedAs& as = options.as;
  command->add_option("--as-role", as.role, "ask for somebody else with this role; admins only")
      ->check(CLI::IsMember({"admin", "operator", "read-only"}).description(""))
      ->type_name("ROLE");
  auto add_list = [command](const char* name, std::vector<std::string>& values, const char* description) {
    return command->add_option(name, values, description)
        ->delimiter(',')
        ->allow_extra_args(false)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
        ->type_name("NAME,...");
  };
  command->add_option("--as-identity", as.identity, "their identity")->type_name("NAME");
  add_list("--as-groups", as.groups, "their groups");
  add_list("--as-agents", as.agents, "the agents that their credential reaches");
  add_list("--as-tags", as.tags, "the tags that it reaches");
  add_list("--as-tools", as.tools, "the tools that it may call");
  command->footer(explain_footer);
  command->callback(registration.callback([](Context& context, const GateOptions& all) {
    if (all.explain.as.says_something() && all.explain.as.role.empty()) {
      return context.fail_with({ExitCode::usage, "explain: --as-... need --as-role: a call is judged by a role"});
    }
    return run_explain(context, all.explain);
  }));
}

void add_policy(CLI::App& parent, const Registration& registration) {
  PolicyTestOptions& options = registration.options->policy_test;
  CLI::App* app = parent.add_subcommand("policy", "test who may do what");
  app->require_subcommand(1);
  CLI::App* test = app->add_subcommand("test", "hold calls and expected decisions against the gates");
  test->add_option("files", options.files, "the cases")->required()->type_name("FILE");
  test->add_option("--config", options.config, "a gateway's configuration, to decide offline")->type_name("FILE");
  test->add_flag("-v,--verbose", options.verbose, "print the cases that pass as well");
  test->footer(policy_test_footer);
  test->callback(registration.callback(
      [](Context& context, const GateOptions& all) { return run_policy_test(context, all.policy_test); }));
}

void add_token(CLI::App& parent, const Registration& registration) {
  GateOptions& options = *registration.options;
  CLI::App* app = parent.add_subcommand("token", "make tokens and their hashes");
  app->require_subcommand(1);
  app->footer(token_footer);
  CLI::App* make = app->add_subcommand("new", "a token at random, with its hash");
  make->add_option("--role,--role-hint", options.token_role, "also print the entry for the gateway's configuration")
      ->check(CLI::IsMember({"admin", "operator", "read-only"}).description(""))
      ->type_name("ROLE");
  make->add_option("--identity", options.token_identity, "whose token it is")->type_name("NAME");
  make->callback(registration.callback([](Context& context, const GateOptions& all) {
    return run_token_new(context, all.token_role, all.token_identity);
  }));
  CLI::App* hash = app->add_subcommand("hash", "the hash of a token from standard input");
  hash->add_flag("--force", options.force_token, "also of a short one");
  hash->callback(registration.callback(
      [](Context& context, const GateOptions& all) { return run_token_hash(context, all.force_token); }));
}

void add_config(CLI::App& parent, const Registration& registration) {
  GateOptions& options = *registration.options;
  CLI::App* app = parent.add_subcommand("config", "the gateway's configuration; admins only");
  app->require_subcommand(0, 1);
  auto show_it = [](Context& context, const GateOptions&) { return run_config_show(context); };
  app->callback([app, run = registration.callback(show_it)] {
    if (app->get_subcommands().empty()) run();
  });
  app->footer(config_footer);
  CLI::App* show = app->add_subcommand("show", "print it, without its secrets");
  show->footer(config_footer);
  show->callback(registration.callback(show_it));
  CLI::App* apply = app->add_subcommand("apply", "put another one in force");
  apply->add_option("file", options.config_file, "the configuration; \"-\" reads standard input")
      ->required()
      ->type_name("FILE");
  apply->footer(config_apply_footer);
  apply->callback(registration.callback(
      [](Context& context, const GateOptions& all) { return run_config_apply(context, all.config_file); }));
}

}  // namespace

void add_call_words(CLI::App& command, CallWords& words) {
  command.add_option("words", words.words, "AGENT__TOOL, then arguments as key=value")->type_name("WORD");
  command.add_option("-a,--arguments", words.arguments, "arguments as a JSON object; \"-\" reads standard input")
      ->type_name("JSON");
  command.add_option("--agent", words.agent, "the agent, instead of AGENT__ in the tool's name")->type_name("AGENT");
  command.add_option("--tool", words.tool, "the tool's name")->type_name("TOOL");
}

void add_wait_option(CLI::App& command, std::optional<std::chrono::milliseconds>& wait, const char* description) {
  // A flag, because an option would take the next word for its value.
  auto text = std::make_shared<std::string>();
  command.add_flag("--wait", *text, description)->each([text, &wait](const std::string& value) {
    auto parsed = parse_wait(value);
    if (!parsed) throw CLI::ValidationError(parsed.error().message, CLI::ExitCodes::ValidationError);
    wait = *parsed;
  });
}

void add_gate_commands(CLI::App& parent, Context& context, int& exit_code) {
  Registration registration{context, exit_code, std::make_shared<GateOptions>()};
  add_approvals(parent, registration);
  add_explain(parent, registration);
  add_policy(parent, registration);
  add_token(parent, registration);
  add_config(parent, registration);
}

}  // namespace hive::cli
