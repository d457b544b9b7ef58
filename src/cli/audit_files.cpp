#include "cli/audit_files.h"

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <optional>

#include <unistd.h>

#include "base/file.h"
#include "base/strings.h"
#include "cli/exit_code.h"
#include "gateway/audit/chain.h"
#include "gateway/audit/line_reader.h"
#include "gateway/audit/log_source.h"

namespace hive::cli {

namespace {
constexpr size_t max_key_bytes = 65536;
constexpr size_t max_note_bytes = 65536;

Result<crypto::PublicKey> parse_public_key(std::string_view text, const std::string& path) {
  crypto::PublicKey key = TRY_CONTEXT(path, crypto::PublicKey::from_line(text));
  if (!key.is_ed25519()) {
    return fail(ErrorCode::invalid_argument, "{}: a key of type {}; a gateway's host key is ssh-ed25519", path,
                quote(key.type()));
  }
  return key;
}
}  // namespace

Result<crypto::PublicKey> read_host_key(const std::string& path) {
  std::string text = TRY(read_file(path, max_key_bytes));
  if (!text.starts_with("-----BEGIN")) return parse_public_key(text, path);
  std::string public_path = path + ".pub";
  if (auto public_text = read_file(public_path, max_key_bytes)) return parse_public_key(*public_text, public_path);
  crypto::PrivateKey key = TRY(crypto::PrivateKey::load(path));
  return key.public_key();
}

Result<audit::Checkpoint> read_checkpoint_note(const std::string& path, const crypto::PublicKey& key,
                                               std::string_view origin) {
  std::string note = TRY(read_file(path, max_note_bytes));
  return TRY_CONTEXT(path, audit::verify_checkpoint_note(note, origin, key));
}

Result<void> write_named_file(const std::string& path, std::string_view content) {
  // The temporary file stands beside it; said of that name, a missing folder would only puzzle.
  std::string folder = std::filesystem::path(path).parent_path().string();
  if (::access(folder.empty() ? "." : folder.c_str(), W_OK | X_OK) != 0) {
    return std::unexpected(system_error(errno, path));
  }
  return write_file_atomically(path, content, 0644);
}

Result<void> require_good_log(const std::string& log, const std::string& host_key) {
  std::optional<crypto::PublicKey> key;
  if (!host_key.empty()) key = TRY(read_host_key(host_key));
  audit::LogSource source = TRY(audit::LogSource::open(log));
  audit::LineReader reader(source.fd.get(), log);
  audit::Chain chain;
  std::uint64_t line_number = 0;
  while (auto line = TRY_CONTEXT("BAD", reader.next())) {
    ++line_number;
    auto kind = TRY_CONTEXT(fmt::format("BAD {}: line {}", log, line_number), chain.add(*line));
    if (kind == audit::Chain::Line::checkpoint && reader.offset() >= source.size) break;
  }
  const auto& last = chain.last_checkpoint();
  if (!last) return fail(ErrorCode::corrupt, "BAD {}: it has no checkpoint: nothing in it is signed", log);
  if (key) TRY_CONTEXT("BAD " + log, audit::verify_checkpoint(*last, *key));
  if (chain.entries() > last->checkpoint.size) {
    print_error(fmt::format("{}: {} entries at the end, which no checkpoint covers yet, are left out", log,
                            chain.entries() - last->checkpoint.size));
  }
  return {};
}

void print_error(std::string_view message) {
  std::fputs(fmt::format("myrmex: {}\n", escape_for_terminal(message)).c_str(), stderr);
}

int report_error(const Error& error) {
  print_error(error.message);
  return static_cast<int>(ExitCode::error);
}

}  // namespace hive::cli
