#include "cli/audit_verify.h"

#include <chrono>
#include <cstdio>
#include <thread>

#include <unistd.h>

#include "base/strings.h"
#include "cli/audit_files.h"
#include "cli/exit_code.h"
#include "gateway/audit/verifier.h"
#include "protocol/json.h"

namespace hive::cli {

namespace {

using Counts = std::map<std::string, std::uint64_t, std::less<>>;

// The first look on a machine has nothing to compare with; every later one has.
Result<audit::VerifyOptions> prepare(const AuditVerifyOptions& options) {
  audit::VerifyOptions prepared;
  prepared.key = TRY(read_host_key(options.host_key));
  prepared.origin = options.origin;
  prepared.min_size = options.min_size;
  prepared.every_signature = options.every_signature;
  if (!options.checkpoint.empty()) {
    prepared.remembered.push_back(TRY(read_checkpoint_note(options.checkpoint, prepared.key, options.origin)));
  }
  if (!options.remember.empty() && (::access(options.remember.c_str(), F_OK) == 0 || errno != ENOENT)) {
    prepared.remembered.push_back(TRY(read_checkpoint_note(options.remember, prepared.key, options.origin)));
  }
  return prepared;
}

Result<void> remember(const AuditVerifyOptions& options, const audit::VerifyReport& report) {
  if (options.remember.empty() || !report.good() || !report.last_checkpoint) return {};
  return write_named_file(options.remember, report.last_checkpoint->note);
}

std::string counts_text(const Counts& counts) {
  std::string text;
  for (const auto& [name, count] : counts)
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", escape_for_terminal(name), count);
  return text.empty() ? "none" : text;
}

std::string counts_json(const Counts& counts) {
  std::string out = "{";
  for (const auto& [name, count] : counts) {
    if (out.size() > 1) out += ',';
    json::append_string(out, name);
    out += fmt::format(":{}", count);
  }
  return out += '}';
}

std::string failure_text(const audit::VerifyFailure& failure) {
  return failure.line > 0 ? fmt::format("line {}: {}", failure.line, failure.reason) : failure.reason;
}

std::string report_json(const AuditVerifyOptions& options, const crypto::PublicKey& key,
                        const audit::VerifyReport& report) {
  std::string out = "{\"log\":" + json::encode_string(options.log);
  out += ",\"host_key\":" + json::encode_string(key.fingerprint());
  out += fmt::format(",\"good\":{},\"signed\":{},\"origin\":{}", report.good(), report.last_signed,
                     json::encode_string(report.origin));
  out += fmt::format(",\"total_entries\":{},\"checkpoints\":{},\"bytes\":{}", report.entries, report.checkpoints,
                     report.bytes);
  out += ",\"by_kind\":" + counts_json(report.by_kind) + ",\"by_outcome\":" + counts_json(report.by_outcome);
  out += fmt::format(",\"intents_without_outcome\":{},\"open_call_ids\":[", report.intents_without_outcome);
  for (size_t i = 0; i < report.open_call_ids.size(); ++i)
    out += (i > 0 ? "," : "") + json::encode_string(report.open_call_ids[i]);
  out += "],\"recoveries\":[";
  for (size_t i = 0; i < report.recoveries.size(); ++i) {
    const audit::RecoveryNote& note = report.recoveries[i];
    out +=
        fmt::format("{}{{\"seq\":{},\"time\":{},\"action\":{},\"detail\":{}}}", i > 0 ? "," : "", note.seq,
                    json::encode_string(note.time), json::encode_string(note.action), json::encode_string(note.detail));
  }
  out += "],\"first_time\":" + json::encode_string(report.first_time);
  out += ",\"last_time\":" + json::encode_string(report.last_time);
  out += fmt::format(",\"longest_silence_seconds\":{}", report.longest_silence_seconds);
  if (report.last_checkpoint) out += ",\"checkpoint\":" + json::encode_string(report.last_checkpoint->note);
  if (report.failure) {
    out += fmt::format(",\"failure\":{{\"line\":{},\"reason\":{}}}", report.failure->line,
                       json::encode_string(report.failure->reason));
  }
  return out += "}\n";
}

std::string duration_text(std::int64_t seconds) {
  if (seconds < 120) return fmt::format("{} s", seconds);
  if (seconds < 7200) return fmt::format("{} min", seconds / 60);
  return fmt::format("{} h", seconds / 3600);
}

// Names only what the signature bears out; otherwise what was looked for.
std::string signer_text(const AuditVerifyOptions& options, const crypto::PublicKey& key,
                        const audit::VerifyReport& report) {
  if (report.last_signed) {
    return fmt::format("  origin       {}\n  signed by    {}\n", escape_for_terminal(report.origin), key.fingerprint());
  }
  std::string origin;
  if (!options.origin.empty()) {
    origin = fmt::format("  expected     origin {}\n", escape_for_terminal(options.origin));
  } else if (!report.origin.empty()) {
    origin = fmt::format("  claims       origin {}, not verified\n", escape_for_terminal(report.origin));
  }
  return origin + fmt::format("  expected key {}\n", key.fingerprint());
}

std::string report_text(const AuditVerifyOptions& options, const crypto::PublicKey& key,
                        const audit::VerifyReport& report, bool color) {
  std::string out = report.failure ? styled("BAD", Style::bad, color) : styled("good", Style::good, color);
  out += fmt::format("  {}", escape_for_terminal(options.log));
  if (report.failure) out += ": " + escape_for_terminal(failure_text(*report.failure));
  out += fmt::format("\n  entries      {} under {} checkpoints", report.entries, report.checkpoints);
  if (report.failure) out += ", up to the failure";
  out += '\n' + signer_text(options, key, report);
  if (!report.first_time.empty()) {
    out += fmt::format("  time         {} to {}\n", escape_for_terminal(report.first_time),
                       escape_for_terminal(report.last_time));
  }
  out += fmt::format("  kinds        {}\n  outcomes     {}\n", counts_text(report.by_kind),
                     counts_text(report.by_outcome));
  if (report.intents_without_outcome > 0) {
    out += fmt::format("  unfinished   {} intents without an outcome:", report.intents_without_outcome);
    for (size_t i = 0; i < report.open_call_ids.size() && i < 5; ++i)
      out += " " + escape_for_terminal(report.open_call_ids[i]);
    out += report.intents_without_outcome > 5 ? " ...\n" : "\n";
  }
  if (report.longest_silence_seconds > 0) {
    out += fmt::format("  silence      {} at most between two checkpoints\n",
                       duration_text(report.longest_silence_seconds));
  }
  for (const audit::RecoveryNote& note : report.recoveries) {
    out += fmt::format("  repair       entry {}, {}: {}\n", note.seq, escape_for_terminal(note.time),
                       escape_for_terminal(note.detail));
  }
  return out;
}

int end_of(const audit::VerifyReport& report) {
  return static_cast<int>(report.good() ? ExitCode::success : ExitCode::error);
}

std::string now_text() {
  return format_rfc3339(std::chrono::floor<std::chrono::seconds>(system_clock().wall_now()));
}

std::string status_line(const audit::VerifyReport& report, bool json) {
  std::string_view status = report.good() ? "OK" : "FAILED";
  if (!json) {
    return fmt::format("[{}] entries={} checkpoints={} status={}\n", now_text(), report.entries, report.checkpoints,
                       status);
  }
  return fmt::format("{{\"time\":\"{}\",\"entries\":{},\"checkpoints\":{},\"status\":\"{}\"}}\n", now_text(),
                     report.entries, report.checkpoints, status);
}

int alert(std::string_view reason) {
  std::fflush(stdout);
  std::fputs(fmt::format("ALERT: {}\n", escape_for_terminal(reason)).c_str(), stderr);
  return static_cast<int>(ExitCode::error);
}

}  // namespace

int run_audit_verify(const AuditVerifyOptions& options, const OutputOptions& format) {
  auto prepared = prepare(options);
  if (!prepared) return report_error(prepared.error());
  crypto::PublicKey key = prepared->key;
  auto report = audit::verify_log(options.log, *std::move(prepared));
  if (!report) return report_error(report.error());
  std::string text =
      format.json ? report_json(options, key, *report) : report_text(options, key, *report, format.color);
  std::fputs(text.c_str(), stdout);
  if (auto remembered = remember(options, *report); !remembered) return report_error(remembered.error());
  return end_of(*report);
}

int run_audit_watch(const AuditVerifyOptions& options, const OutputOptions& format) {
  auto prepared = prepare(options);
  if (!prepared) return report_error(prepared.error());
  audit::Verifier verifier(*std::move(prepared));
  while (true) {
    // A log that cannot be read is not a good log: whoever watches must hear of it.
    if (auto updated = verifier.update(options.log); !updated) return alert(updated.error().message);
    const audit::VerifyReport& report = verifier.report();
    std::fputs(status_line(report, format.json).c_str(), stdout);
    std::fflush(stdout);
    if (report.failure) return alert(options.log + ": " + failure_text(*report.failure));
    if (std::ferror(stdout) != 0) return static_cast<int>(ExitCode::error);
    if (auto remembered = remember(options, report); !remembered) return report_error(remembered.error());
    std::this_thread::sleep_for(std::chrono::duration<double>(options.interval_seconds));
  }
}

}  // namespace hive::cli
