#include "cli/audit_files.h"

#include <cstdio>

#include "base/file.h"
#include "base/strings.h"
#include "cli/exit_code.h"

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

void print_error(std::string_view message) {
  std::fputs(fmt::format("myrmex: {}\n", escape_for_terminal(message)).c_str(), stderr);
}

int report_error(const Error& error) {
  print_error(error.message);
  return static_cast<int>(ExitCode::error);
}

}  // namespace hive::cli
