#include "cli/audit_commands.h"

#include <charconv>
#include <memory>

#include <CLI/CLI.hpp>

#include "base/strings.h"
#include "cli/audit_export.h"
#include "cli/audit_list.h"
#include "cli/audit_proofs.h"
#include "cli/audit_verify.h"

namespace hive::cli {

namespace {

constexpr const char* audit_footer =
    R"(All of them work on files alone; no gateway and no token is needed, except for `list --gateway`.

Examples:
  myrmex audit verify --log audit.log --host-key host_key.pub --remember seen.note
  myrmex audit list --gateway --action call --outcome denied --since 2026-11-30
  myrmex audit prove 42 --log audit.log --out 42.proof
  myrmex audit check 42.proof --host-key host_key.pub
  myrmex audit checkpoint --log audit.log --host-key host_key.pub --out DIR

Exit codes: 0 good, 1 bad or unreadable, 2 wrong command line.)";

constexpr const char* verify_footer =
    R"(Numbers, framing, the Merkle root at every checkpoint and the last signature are always checked. A log whose end
was cut off at a checkpoint is only noticed with --remember, --checkpoint or --min-size.)";

constexpr const char* checkpoint_footer =
    R"(Writes checkpoint.note (C2SP signed note), checkpoint.txt and checkpoint.txt.sig, and with --host-key also
allowed_signers. Stock OpenSSH checks them:
  cd DIR; ssh-keygen -Y verify -f allowed_signers -I ORIGIN -n myrmex-audit-checkpoint \
      -s checkpoint.txt.sig < checkpoint.txt
ORIGIN is the first line of checkpoint.txt. Without --out the note goes to standard output.)";

void add_log_option(CLI::App& command, std::string& value) {
  command.add_option("--log", value, "the audit log (MYRMEX_AUDIT_LOG)")
      ->envname("MYRMEX_AUDIT_LOG")
      ->type_name("FILE");
}

void add_host_key_option(CLI::App& command, std::string& value) {
  command.add_option("--host-key", value, "the gateway's host key, better the public one (MYRMEX_HOST_KEY)")
      ->envname("MYRMEX_HOST_KEY")
      ->type_name("FILE");
}

// CLI11 would take -1 for the largest number there is.
std::string a_number(const std::string& text) {
  std::uint64_t number = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (!text.empty() && error == std::errc() && end == text.data() + text.size()) return {};
  return quote(text) + " is not a whole number from 0 on";
}

std::string a_time(const std::string& text) {
  if (audit::is_time_prefix(text)) return {};
  return quote(text) + " is not a time like 2026-11-30T12:57:23Z, or the beginning of one";
}

// CLI11's own message would not tell of the variables that do as well.
void need_log(const std::string& value) {
  if (value.empty()) throw CLI::RequiredError("--log FILE (or MYRMEX_AUDIT_LOG)");
}
void need_host_key(const std::string& value) {
  if (value.empty()) throw CLI::RequiredError("--host-key FILE (or MYRMEX_HOST_KEY)");
}

void add_verify_options(CLI::App& command, AuditVerifyOptions& options) {
  add_log_option(command, options.log);
  add_host_key_option(command, options.host_key);
  command.add_option("--origin", options.origin, "the name that the log must have in its checkpoints")
      ->type_name("NAME");
  command
      .add_option("--remember", options.remember,
                  "checkpoint of the last good look: the log must go on from it; updated after a good look")
      ->type_name("FILE");
  command.add_option("--checkpoint", options.checkpoint, "a checkpoint note that the log must go on from")
      ->type_name("FILE");
  command.add_option("--min-size", options.min_size, "entries that the log must have at least")
      ->check(a_number)
      ->type_name("N");
  command.add_flag("--every-signature", options.every_signature, "verify each checkpoint's signature; slow");
}

// Everything that the callbacks refer to; each keeps it alive.
struct AuditOptions {
  AuditVerifyOptions verify;
  AuditVerifyOptions watch;
  AuditExportOptions export_entries;
  AuditProveOptions prove;
  AuditCheckOptions check;
  AuditCheckpointOptions checkpoint;
  std::string pubkey_host_key;
  std::string list_log;
  bool list_gateway = false;
  audit::Query query;
};

using Shared = std::shared_ptr<AuditOptions>;

void add_verifying(CLI::App& app, const Shared& options, int& exit_code, const OutputOptions& format) {
  CLI::App* verify = app.add_subcommand("verify", "verify a whole log");
  add_verify_options(*verify, options->verify);
  verify->footer(verify_footer);
  verify->callback([options, &exit_code, &format] {
    need_log(options->verify.log);
    need_host_key(options->verify.host_key);
    exit_code = run_audit_verify(options->verify, format);
  });

  CLI::App* watch = app.add_subcommand("watch", "verify what is new, again and again; ends at the first failure");
  add_verify_options(*watch, options->watch);
  watch->add_option("--interval", options->watch.interval_seconds, "seconds between two looks (30)")
      ->check(CLI::Range(0.01, 86400.0))
      ->type_name("SECONDS");
  watch->callback([options, &exit_code, &format] {
    need_log(options->watch.log);
    need_host_key(options->watch.host_key);
    exit_code = run_audit_watch(options->watch, format);
  });
}

void add_listing(CLI::App& app, const Shared& options, int& exit_code, Context& context) {
  CLI::App* list = app.add_subcommand("list", "print the newest entries");
  audit::Query& query = options->query;
  query.limit = 50;
  add_log_option(*list, options->list_log);
  list->add_flag("--gateway", options->list_gateway, "ask the gateway instead of a file; admins only");
  list->add_option("--principal,--actor", query.principal, "only of this person or credential")->type_name("NAME");
  list->add_option("--agent", query.agent, "only about this agent")->type_name("AGENT");
  list->add_option("--tool", query.tool, "only about this tool")->type_name("TOOL");
  list->add_option("--action", query.action, "only this action")->type_name("ACTION");
  list->add_option("--reason", query.reason, "only with this reason code")->type_name("CODE");
  list->add_option("--call-id", query.call_id, "only this call")->type_name("ID");
  list->add_option("--request-id", query.request_id, "only this request, such as all calls of many agents")
      ->type_name("ID");
  list->add_option_function<std::string>(
          "--outcome", [&query](const std::string& name) { query.outcome = protocol::outcome_from_string(name); },
          "only with this outcome")
      ->check(CLI::IsMember({"success", "denied", "failure", "cancelled", "expired", "unknown"}))
      ->type_name("OUTCOME");
  list->add_option("--since", query.since, "only from this time on, UTC like 2026-11-30T12:57:23Z")
      ->check(a_time)
      ->type_name("TIME");
  list->add_option("--until", query.until, "only up to this time")->check(a_time)->type_name("TIME");
  list->add_option("--before", query.before_seq, "only entries with a smaller number")
      ->check(a_number)
      ->type_name("SEQ");
  list->add_option("--limit", query.limit, "how many (50)")->check(CLI::Range(1, 1000))->type_name("N");
  auto ask_gateway = interruptible(context, exit_code,
                                   [options](Context& all) { return run_audit_list_of_gateway(all, options->query); });
  list->callback([options, &exit_code, &context, ask_gateway] {
    if (options->list_gateway) return ask_gateway();
    need_log(options->list_log);
    exit_code = run_audit_list(options->list_log, options->query, context.format);
  });
}

void add_exporting(CLI::App& app, const Shared& options, int& exit_code) {
  CLI::App* export_entries = app.add_subcommand("export", "write all entries as JSON or CSV");
  add_log_option(*export_entries, options->export_entries.log);
  add_host_key_option(*export_entries, options->export_entries.host_key);
  export_entries
      ->add_option_function<std::string>(
          "--format",
          [options = options.get()](const std::string& name) { options->export_entries.csv = name == "csv"; },
          "json or csv")
      ->check(CLI::IsMember({"json", "csv"}))
      ->type_name("FORMAT");
  export_entries->add_option("--out", options->export_entries.out, "where to (standard output)")->type_name("FILE");
  export_entries->callback([options, &exit_code] {
    need_log(options->export_entries.log);
    exit_code = run_audit_export(options->export_entries);
  });
}

void add_proving(CLI::App& app, const Shared& options, int& exit_code, const OutputOptions& format) {
  CLI::App* prove = app.add_subcommand("prove", "write the proof that an entry stands in a log");
  prove->add_option("seq", options->prove.seq, "the entry's number")->required()->check(a_number)->type_name("SEQ");
  add_log_option(*prove, options->prove.log);
  prove->add_option("--out", options->prove.out, "where to (standard output)")->type_name("FILE");
  prove->callback([options, &exit_code] {
    need_log(options->prove.log);
    exit_code = run_audit_prove(options->prove);
  });

  CLI::App* check = app.add_subcommand("check", "check such a proof, without the log");
  check->add_option("proof", options->check.proof, "the proof; \"-\" reads standard input")
      ->required()
      ->type_name("FILE");
  add_host_key_option(*check, options->check.host_key);
  check->add_option("--origin", options->check.origin, "the name that the log must have")->type_name("NAME");
  check->callback([options, &exit_code, &format] {
    need_host_key(options->check.host_key);
    exit_code = run_audit_check(options->check, format);
  });

  CLI::App* checkpoint = app.add_subcommand("checkpoint", "write a checkpoint for ssh-keygen and other tools");
  add_log_option(*checkpoint, options->checkpoint.log);
  checkpoint->add_option("--out", options->checkpoint.out, "a folder for the files")->type_name("DIR");
  add_host_key_option(*checkpoint, options->checkpoint.host_key);
  checkpoint->footer(checkpoint_footer);
  checkpoint->callback([options, &exit_code] {
    need_log(options->checkpoint.log);
    exit_code = run_audit_checkpoint(options->checkpoint);
  });

  CLI::App* pubkey = app.add_subcommand("pubkey", "print the public key that signs the log");
  add_host_key_option(*pubkey, options->pubkey_host_key);
  pubkey->callback([options, &exit_code] {
    need_host_key(options->pubkey_host_key);
    exit_code = run_audit_pubkey(options->pubkey_host_key);
  });
}

}  // namespace

void add_audit_commands(CLI::App& parent, int& exit_code, Context& context) {
  CLI::App* app = parent.add_subcommand("audit", "verify, read and prove the audit log");
  app->require_subcommand(1);
  app->footer(audit_footer);
  auto options = std::make_shared<AuditOptions>();
  add_verifying(*app, options, exit_code, context.format);
  add_listing(*app, options, exit_code, context);
  add_exporting(*app, options, exit_code);
  add_proving(*app, options, exit_code, context.format);
}

}  // namespace hive::cli
