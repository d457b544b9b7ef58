#include "cli/audit_proofs.h"

#include <cerrno>
#include <cstdio>
#include <filesystem>

#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/strings.h"
#include "cli/audit_files.h"
#include "cli/exit_code.h"
#include "crypto/sshsig.h"
#include "gateway/audit/proof.h"
#include "gateway/audit/reader.h"
#include "protocol/json.h"

namespace hive::cli {

namespace {

constexpr size_t max_proof_bytes = size_t{4} << 20;
constexpr int good = static_cast<int>(ExitCode::success);

Result<std::string> read_proof(const std::string& path) {
  if (path != "-") return read_file(path, max_proof_bytes);
  std::string text;
  char piece[16384];
  while (size_t count = std::fread(piece, 1, sizeof piece, stdin)) {
    text.append(piece, count);
    if (text.size() > max_proof_bytes) {
      return fail(ErrorCode::resource_exhausted, "standard input: larger than {} bytes", max_proof_bytes);
    }
  }
  if (std::ferror(stdin) != 0) return std::unexpected(system_error(errno, "standard input"));
  return text;
}

// For a command that is printed to be pasted into a shell.
std::string shell_word(std::string_view text) {
  constexpr std::string_view plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./@%+=:,-";
  std::string shown = escape_for_terminal(text);
  if (!shown.empty() && shown.find_first_not_of(plain) == std::string::npos) return shown;
  std::string word = "'";
  for (char c : shown) {
    if (c == '\'') word += "'\\'";
    word += c;
  }
  return word += '\'';
}

Result<void> write_checkpoint_files(const AuditCheckpointOptions& options, const audit::SealedCheckpoint& sealed) {
  const std::string& folder = options.out;
  if (::mkdir(folder.c_str(), 0755) != 0 && errno != EEXIST) return std::unexpected(system_error(errno, folder));
  auto signature = TRY_CONTEXT(options.log, from_base64(sealed.ssh_signature));
  crypto::Note note = TRY_CONTEXT(options.log, crypto::parse_note(sealed.note));
  if (!options.host_key.empty()) {
    crypto::PublicKey key = TRY(read_host_key(options.host_key));
    TRY_CONTEXT(options.log, audit::verify_checkpoint(sealed, key));
    std::string signer = fmt::format("{} namespaces=\"{}\" {} {}\n", sealed.checkpoint.origin,
                                     audit::ssh_signature_namespace, key.type(), to_base64(key.blob()));
    TRY(write_file_atomically(folder + "/allowed_signers", signer, 0644));
  }
  TRY(write_file_atomically(folder + "/checkpoint.note", sealed.note, 0644));
  TRY(write_file_atomically(folder + "/checkpoint.txt", note.text, 0644));
  return write_file_atomically(folder + "/checkpoint.txt.sig", crypto::sshsig_armor(signature), 0644);
}

}  // namespace

int run_audit_prove(const AuditProveOptions& options) {
  if (auto verified = require_good_log(options.log, {}); !verified) return report_error(verified.error());
  auto proof = audit::prove_entry(options.log, options.seq);
  if (!proof) return report_error(proof.error());
  std::string text = audit::proof_to_json(*proof);
  if (options.out.empty()) {
    std::fputs(text.c_str(), stdout);
    return good;
  }
  if (auto written = write_named_file(options.out, text); !written) return report_error(written.error());
  std::fputs(fmt::format("proof of entry {} with {} hashes written to {}\n", proof->seq, proof->hashes.size(),
                         escape_for_terminal(options.out))
                 .c_str(),
             stderr);
  return good;
}

int run_audit_check(const AuditCheckOptions& options, const OutputOptions& format) {
  auto check = [&]() -> Result<std::string> {
    crypto::PublicKey key = TRY(read_host_key(options.host_key));
    std::string text = TRY(read_proof(options.proof));
    audit::EntryProof proof = TRY_CONTEXT(options.proof, audit::proof_from_json(text));
    audit::Checkpoint checkpoint = TRY_CONTEXT(options.proof, audit::check_proof(proof, options.origin, key));
    if (format.json) {
      return fmt::format("{{\"good\":true,\"seq\":{},\"size\":{},\"origin\":{},\"checkpoint_time\":{},\"entry\":{}}}\n",
                         proof.seq, checkpoint.size, json::encode_string(checkpoint.origin),
                         json::encode_string(checkpoint.time), proof.entry);
    }
    return fmt::format("{}  entry {} stands in the log {} of {} entries, signed by {} at {}\n{}\n",
                       styled("good", Style::good, format.color), proof.seq, escape_for_terminal(checkpoint.origin),
                       checkpoint.size, key.fingerprint(), escape_for_terminal(checkpoint.time),
                       escape_for_terminal(proof.entry));
  };
  auto result = check();
  if (!result) return report_error(result.error());
  std::fputs(result->c_str(), stdout);
  return good;
}

int run_audit_checkpoint(const AuditCheckpointOptions& options) {
  if (auto verified = require_good_log(options.log, options.host_key); !verified) return report_error(verified.error());
  auto sealed = audit::read_ssh_signed_checkpoint(options.log);
  if (!sealed) return report_error(sealed.error());
  if (options.out.empty()) {
    std::fputs(sealed->note.c_str(), stdout);
    return good;
  }
  if (auto written = write_checkpoint_files(options, *sealed); !written) return report_error(written.error());
  auto file = [&](std::string_view name) { return (std::filesystem::path(options.out) / name).string(); };
  std::fputs(fmt::format("checkpoint of {} entries written to {}; check it with:\n"
                         "  ssh-keygen -Y verify -f {} -I {} -n {} -s {} < {}\n{}",
                         sealed->checkpoint.size, escape_for_terminal(options.out), shell_word(file("allowed_signers")),
                         shell_word(sealed->checkpoint.origin), audit::ssh_signature_namespace,
                         shell_word(file("checkpoint.txt.sig")), shell_word(file("checkpoint.txt")),
                         options.host_key.empty() ? "allowed_signers is written when --host-key is given\n" : "")
                 .c_str(),
             stderr);
  return good;
}

int run_audit_pubkey(const std::string& host_key) {
  auto key = read_host_key(host_key);
  if (!key) return report_error(key.error());
  std::fputs(fmt::format("The gateway signs its audit log with this key ({}). Keep a copy where the gateway cannot "
                         "change it, and verify with: myrmex audit verify --log FILE --host-key COPY\n",
                         key->fingerprint())
                 .c_str(),
             stderr);
  std::fputs((escape_for_terminal(key->to_line()) + "\n").c_str(), stdout);
  return good;
}

}  // namespace hive::cli
