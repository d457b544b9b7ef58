#include "cli/enrolment_commands.h"

#include <memory>

#include <CLI/CLI.hpp>

#include "base/file.h"
#include "base/strings.h"
#include "cli/bootstrap.h"
#include "cli/json_text.h"
#include "cli/prompt.h"
#include "cli/rotate.h"
#include "protocol/json.h"

namespace hive::cli {

namespace {

constexpr std::size_t max_key_bytes = 16384;

constexpr const char* bootstrap_footer =
    R"(Makes an Ed25519 key and a configuration that pins the gateway's host key, and enrols the key. It overwrites
nothing, and leaves nothing behind when it fails. With an admin's token it makes the join token itself.

Examples:
  MYRMEX_JOIN_TOKEN=... myrmex bootstrap --agent-id edge-1 --url https://gateway.example.org:8080
  ssh admin myrmex enroll-token --agent-id edge-1 | myrmex bootstrap --agent-id edge-1 --join-token-file -)";

constexpr const char* token_footer =
    R"(Prints a join token: with it one key can be enrolled for this agent, once. It is shown only now.

Examples:
  myrmex enroll-token --agent-id edge-1
  myrmex enroll-token --agent-id edge-1 --ttl 120 | ssh edge-1 myrmex bootstrap --agent-id edge-1 --join-token-file -)";

constexpr const char* enroll_footer =
    R"(For a key that was made by other means; `myrmex bootstrap` makes one. Only the key counts, not its comment.

Example:
  myrmex enroll --agent-id edge-1 --public-key-file id_ed25519.pub --join-token-file join_token)";

constexpr const char* rotate_footer =
    R"(Runs where the agent runs. The agent connects with its new key before it gives up the old connection, which finishes
its calls. The old private key is kept beside the new one as FILE.old. For a key that another program makes:
`myrmex enroll`, then `myrmex agents revoke ID --key FINGERPRINT`.

Examples:
  myrmex rotate --config /etc/myrmex-agent/agent_config.json --agent-pid $(pidof myrmex-agent) --revoke-old
  myrmex rotate --config agent_config.json)";

constexpr const char* revoke_footer =
    R"(Removes the agent's keys, ends its sessions and kills its open join tokens: it cannot return. With --key only that
key goes, and the sessions that stand on it.

Examples:
  myrmex agents revoke edge-1
  myrmex agents revoke edge-1 --key SHA256:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU --yes)";

/// What the parser fills in; shared by the callbacks.
struct Options {
  BootstrapOptions bootstrap;
  RotateOptions rotate;
  JoinTokenOptions join_token;
  std::string agent;
  std::string public_key_path;
  std::string fingerprint;
  std::int64_t ttl_seconds = 0;
  std::int64_t patience = 120;
  bool yes = false;
};

void add_join_token(CLI::App& command, JoinTokenOptions& options) {
  command
      .add_option("--join-token-file", options.file,
                  "file with the join token, or - for standard input (MYRMEX_JOIN_TOKEN)")
      ->type_name("FILE");
  command.add_option("--join-token", options.token, "the join token itself; shows in the process list")
      ->type_name("TOKEN");
}

void add_agent(CLI::App& command, std::string& agent) {
  command.add_option("--agent-id", agent, "the agent")->required()->type_name("AGENT");
}

std::expected<void, Failure> check_id(const std::string& agent) {
  if (auto checked = check_agent_id(agent); !checked) {
    return std::unexpected(Failure{ExitCode::usage, checked.error().message});
  }
  return {};
}

ExitCode run_enroll_token(Context& context, const Options& options) {
  if (auto checked = check_id(options.agent); !checked) return context.fail_with(checked.error());
  auto gateway = context.gateway();
  if (!gateway) return context.fail_with(gateway.error());
  std::optional<std::int64_t> ttl;
  if (options.ttl_seconds > 0) ttl = options.ttl_seconds;
  auto token = mint_join_token(*gateway, options.agent, ttl);
  if (!token) return context.fail_with(token.error());
  if (context.format.json) {
    context.output.write(pretty_json(trim(token->body)));
    return ExitCode::success;
  }
  context.output.note(
      fmt::format("join token for {}, good once until {}:", options.agent, escape_for_terminal(token->expires_at)));
  context.output.write(escape_for_terminal(token->token) + "\n");
  return ExitCode::success;
}

ExitCode run_enroll(Context& context, const Options& options) {
  if (auto checked = check_id(options.agent); !checked) return context.fail_with(checked.error());
  auto key = [&]() -> Result<crypto::PublicKey> {
    std::string text = TRY(read_file(options.public_key_path, max_key_bytes));
    return TRY_CONTEXT(options.public_key_path, crypto::PublicKey::from_line(trim(text)));
  }();
  if (!key) return context.fail_with({ExitCode::usage, escape_for_terminal(key.error().message)});
  auto token = given_join_token(options.join_token, context.environment);
  if (!token) return context.fail_with(token.error());
  if (!*token) {
    return context.fail_with({ExitCode::usage,
                              "no join token: let an admin run `myrmex enroll-token`, and give what it prints by "
                              "--join-token-file FILE or MYRMEX_JOIN_TOKEN"});
  }
  auto gateway = context.gateway_without_token();
  if (!gateway) return context.fail_with(gateway.error());
  auto enrolled = enroll_key(*gateway, **token, options.agent, *key);
  if (!enrolled) return context.fail_with(enrolled.error());
  context.output.write(context.format.json
                           ? pretty_json(trim(enrolled->body))
                           : fmt::format("Agent {} is enrolled with key {}.\nThe gateway's host key: {}\n",
                                         options.agent, enrolled->fingerprint, enrolled->gateway_host_key));
  return ExitCode::success;
}

std::expected<void, Failure> confirm_revocation(const Context& context, const Options& options) {
  if (options.yes) return {};
  std::string what = options.fingerprint.empty() ? fmt::format("every key and the sessions of agent {}", options.agent)
                                                 : fmt::format("one key of agent {} and its sessions", options.agent);
  if (!can_ask()) {
    return std::unexpected(Failure{ExitCode::usage, "nothing is revoked without --yes: this would end " + what});
  }
  auto answer = ask_line(fmt::format("End {}? [y/N] ", what), true, context.cancel_fd);
  if (!answer) {
    ExitCode code = answer.error().code == ErrorCode::cancelled ? ExitCode::interrupted : ExitCode::error;
    return std::unexpected(Failure{code, answer.error().message});
  }
  if (*answer == "y" || *answer == "Y" || *answer == "yes") return {};
  return std::unexpected(Failure{ExitCode::error, "nothing was revoked"});
}

ExitCode run_revoke(Context& context, const Options& options) {
  if (auto checked = check_id(options.agent); !checked) return context.fail_with(checked.error());
  if (auto agreed = confirm_revocation(context, options); !agreed) return context.fail_with(agreed.error());
  auto gateway = context.gateway();
  if (!gateway) return context.fail_with(gateway.error());
  auto body = revoke_agent(*gateway, options.agent, options.fingerprint);
  if (!body) return context.fail_with(body.error());
  if (context.format.json) {
    context.output.write(pretty_json(trim(*body)));
    return ExitCode::success;
  }
  auto members = json::parse_object(*body, {.max_bytes = body->size()});
  auto number = [&](std::string_view key) {
    auto raw = members ? json::find(*members, key) : std::nullopt;
    return raw ? json::decode_integer(*raw).value_or(0) : 0;
  };
  auto dropped = members ? json::find(*members, "session_dropped") : std::nullopt;
  std::int64_t keys = number("keys_removed");
  if (keys == 0) {
    context.output.note(options.fingerprint.empty()
                            ? fmt::format("agent {} had no key", options.agent)
                            : fmt::format("agent {} has no such key; `myrmex keys` lists them", options.agent));
  }
  context.output.write(fmt::format("Agent {}: {} {} removed, session {}, {} open join tokens killed.\n", options.agent,
                                   keys, keys == 1 ? "key" : "keys", dropped == "true" ? "ended" : "not open",
                                   number("join_tokens_revoked")));
  return ExitCode::success;
}

std::string text_member(std::span<const json::Member> members, std::string_view key) {
  auto raw = json::find(members, key);
  return raw ? json::decode_string(*raw).value_or("") : "";
}

std::string joined_texts(std::string_view raw_array) {
  auto items = json::parse_array(raw_array, {.max_bytes = raw_array.size()});
  std::vector<std::string> texts;
  for (std::string_view item : items ? *items : std::vector<std::string_view>())
    texts.push_back(json::decode_string(item).value_or(""));
  return join(texts, ",");
}

ExitCode run_keys(Context& context) {
  auto gateway = context.gateway();
  if (!gateway) return context.fail_with(gateway.error());
  auto body = gateway->get_json("/api/keys");
  if (!body) return context.fail_with(body.error());
  if (context.format.json) {
    context.output.write(pretty_json(trim(*body)));
    return ExitCode::success;
  }
  json::Limits limits{.max_bytes = body->size(), .max_values = 5'000'000};
  auto members = json::parse_object(*body, limits);
  auto raw = members ? json::find(*members, "entries") : std::nullopt;
  auto entries = raw ? json::parse_array(*raw, limits) : fail(ErrorCode::corrupt, "the answer has no entries");
  if (!entries) return context.fail_with({ExitCode::error, entries.error().message});
  if (entries->empty()) {
    context.output.write("No key is enrolled. `myrmex enroll-token --agent-id ID` begins an enrolment.\n");
    return ExitCode::success;
  }
  Table table({"LINE", "AGENT ID", "FINGERPRINT", "REMARKS"});
  for (std::string_view entry : *entries) {
    auto of_entry = json::parse_object(entry, limits);
    if (!of_entry) continue;
    std::vector<std::string> remarks;
    if (auto from = json::find(*of_entry, "from")) remarks.push_back("from " + joined_texts(*from));
    if (auto expires = text_member(*of_entry, "expires_at"); !expires.empty()) remarks.push_back("expires " + expires);
    if (auto refused = text_member(*of_entry, "refused"); !refused.empty()) remarks.push_back("refused: " + refused);
    table.add({std::string(json::find(*of_entry, "line").value_or("")), text_member(*of_entry, "agent_id"),
               text_member(*of_entry, "fingerprint"), join(remarks, "; ")});
  }
  context.output.write(table.render(context.output.width(), context.format.color));
  return ExitCode::success;
}

}  // namespace

void add_enrolment_commands(CLI::App& parent, Context& context, int& exit_code) {
  auto options = std::make_shared<Options>();
  auto callback = [&context, &exit_code](std::function<ExitCode(Context&)> command) {
    return interruptible(context, exit_code, std::move(command));
  };

  CLI::App* bootstrap = parent.add_subcommand("bootstrap", "make this machine an agent");
  add_agent(*bootstrap, options->bootstrap.agent);
  bootstrap
      ->add_option("--gateway-addr", options->bootstrap.gateway_address,
                   "where the agent dials (the host of --url, port 2222)")
      ->type_name("HOST:PORT");
  add_join_token(*bootstrap, options->bootstrap.join_token);
  bootstrap->add_option("--key-out", options->bootstrap.key_path, "the private key to make (id_ed25519)")
      ->type_name("FILE");
  bootstrap->add_option("--config-out", options->bootstrap.config_path, "the configuration to make (agent_config.json)")
      ->type_name("FILE");
  bootstrap->footer(bootstrap_footer);
  bootstrap->callback(callback([options](Context& used) { return run_bootstrap(used, options->bootstrap); }));

  CLI::App* token = parent.add_subcommand("enroll-token", "let one agent enrol");
  add_agent(*token, options->agent);
  token->add_option("--ttl", options->ttl_seconds, "how long the token is good (the gateway's default)")
      ->check(CLI::Range(1, 86400).description(""))
      ->type_name("SECONDS");
  token->footer(token_footer);
  token->callback(callback([options](Context& used) { return run_enroll_token(used, *options); }));

  CLI::App* enroll = parent.add_subcommand("enroll", "enrol a public key with a join token");
  add_agent(*enroll, options->agent);
  enroll->add_option("--public-key-file", options->public_key_path, "the key, as ssh-keygen writes it to FILE.pub")
      ->required()
      ->type_name("FILE");
  add_join_token(*enroll, options->join_token);
  enroll->footer(enroll_footer);
  enroll->callback(callback([options](Context& used) { return run_enroll(used, *options); }));

  CLI::App* rotate = parent.add_subcommand("rotate", "give the agent on this machine a new key");
  rotate->add_option("--config", options->rotate.config_path, "the agent's configuration (agent_config.json)")
      ->type_name("FILE");
  rotate->add_option("--agent-id", options->rotate.agent, "refuse a configuration of another agent")
      ->type_name("AGENT");
  add_join_token(*rotate, options->rotate.join_token);
  rotate->add_option("--agent-pid", options->rotate.agent_pid, "the running agent, to be told by SIGHUP")
      ->check(CLI::Range(2, 4194304).description(""))
      ->type_name("PID");
  rotate->add_option("--wait", options->patience, "how long to wait for the agent (120)")
      ->check(CLI::Range(1, 86400).description(""))
      ->type_name("SECONDS");
  rotate->add_flag("--revoke-old", options->rotate.revoke_old, "revoke the old key when its connection is gone");
  rotate->footer(rotate_footer);
  rotate->callback(callback([options](Context& used) {
    options->rotate.patience = std::chrono::seconds(options->patience);
    return run_rotate(used, options->rotate);
  }));

  parent.add_subcommand("keys", "the keys that the gateway accepts")->callback(callback(run_keys));

  CLI::App* revoke = parent.get_subcommand("agents")->add_subcommand("revoke", "end an agent's access for good");
  revoke->add_option("agent", options->agent, "the agent")->required()->type_name("AGENT");
  revoke->add_option("--key", options->fingerprint, "only this key")->type_name("FINGERPRINT");
  revoke->add_flag("--yes", options->yes, "do not ask");
  revoke->footer(revoke_footer);
  revoke->callback(callback([options](Context& used) { return run_revoke(used, *options); }));
}

}  // namespace hive::cli
