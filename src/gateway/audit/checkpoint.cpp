#include "gateway/audit/checkpoint.h"

#include <algorithm>
#include <charconv>

#include "base/strings.h"
#include "crypto/sshsig.h"
#include "protocol/json.h"

namespace hive::audit {

namespace {

constexpr std::string_view line_start = "{\"checkpoint\":";
constexpr std::string_view time_prefix = "time ";

std::unexpected<Error> malformed(std::string_view why) {
  return fail(ErrorCode::corrupt, "checkpoint is malformed: {}", why);
}

Result<std::uint64_t> parse_size(std::string_view text) {
  std::uint64_t size = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), size);
  bool canonical = text == "0" || (!text.empty() && text[0] != '0');
  if (!canonical || error != std::errc() || end != text.data() + text.size()) return malformed("its size is no number");
  return size;
}

}  // namespace

std::string checkpoint_text(const Checkpoint& checkpoint) {
  return fmt::format("{}\n{}\n{}\n{}{}\n", checkpoint.origin, checkpoint.size, to_base64(checkpoint.root), time_prefix,
                     checkpoint.time);
}

Result<Checkpoint> parse_checkpoint_text(std::string_view text) {
  if (!text.ends_with('\n')) return malformed("its last line is cut");
  text.remove_suffix(1);
  auto lines = split(text, '\n');
  if (lines.size() < 3) return malformed("it has fewer than three lines");
  Checkpoint checkpoint;
  if (!crypto::is_note_key_name(lines[0])) return malformed("its origin is no plain name");
  checkpoint.origin = lines[0];
  checkpoint.size = TRY(parse_size(lines[1]));
  auto root = from_base64(lines[2]);
  if (!root || root->size() != checkpoint.root.size()) return malformed("its root is no SHA-256 in base64");
  std::ranges::copy(*root, checkpoint.root.begin());
  if (lines.size() > 3 && lines[3].starts_with(time_prefix)) checkpoint.time = lines[3].substr(time_prefix.size());
  return checkpoint;
}

SealedCheckpoint seal(Checkpoint checkpoint, const crypto::PrivateKey& key, bool ssh_signature) {
  SealedCheckpoint sealed;
  std::string text = checkpoint_text(checkpoint);
  sealed.note = crypto::sign_note(text, checkpoint.origin, key);
  if (ssh_signature) sealed.ssh_signature = to_base64(crypto::sshsig_sign(text, ssh_signature_namespace, key));
  sealed.checkpoint = std::move(checkpoint);
  return sealed;
}

std::string checkpoint_line(const SealedCheckpoint& sealed) {
  std::string line(line_start);
  json::append_string(line, sealed.note);
  if (!sealed.ssh_signature.empty()) {
    line += ",\"sshsig\":";
    json::append_string(line, sealed.ssh_signature);
  }
  return line += '}';
}

bool is_checkpoint_line(std::string_view line) {
  return line.starts_with(line_start);
}

Result<SealedCheckpoint> parse_checkpoint_line(std::string_view line) {
  auto members = json::parse_object(line, {.max_bytes = 65536, .max_depth = 2, .max_values = 16});
  if (!members) return malformed(members.error().message);
  auto note = json::find(*members, "checkpoint");
  auto text = note ? json::decode_string(*note) : std::nullopt;
  if (!text) return malformed("it holds no note");
  SealedCheckpoint sealed;
  crypto::Note parts = TRY(crypto::parse_note(*text));
  sealed.checkpoint = TRY(parse_checkpoint_text(parts.text));
  sealed.note = std::move(*text);
  if (auto signature = json::find(*members, "sshsig")) {
    auto encoded = json::decode_string(*signature);
    if (!encoded) return malformed("its SSH signature is no text");
    sealed.ssh_signature = std::move(*encoded);
  }
  // Only one way to write a checkpoint: what nobody reads cannot be changed unnoticed either.
  if (checkpoint_line(sealed) != line) return malformed("it is not written the way the gateway writes it");
  return sealed;
}

Result<void> verify_checkpoint(const SealedCheckpoint& sealed, const crypto::PublicKey& key) {
  crypto::Note parts = TRY(crypto::parse_note(sealed.note));
  TRY(crypto::verify_note(parts, sealed.checkpoint.origin, key));
  if (sealed.ssh_signature.empty()) return {};
  auto signature = TRY_CONTEXT("SSH signature", from_base64(sealed.ssh_signature));
  return crypto::sshsig_verify(parts.text, ssh_signature_namespace, signature, key);
}

Result<Checkpoint> verify_checkpoint_note(std::string_view note, std::string_view origin,
                                          const crypto::PublicKey& key) {
  crypto::Note parts = TRY(crypto::parse_note(note));
  Checkpoint checkpoint = TRY(parse_checkpoint_text(parts.text));
  if (!origin.empty() && checkpoint.origin != origin) {
    return fail(ErrorCode::permission_denied, "checkpoint is of the log {}, expected {}", quote(checkpoint.origin),
                quote(origin));
  }
  TRY(crypto::verify_note(parts, checkpoint.origin, key));
  return checkpoint;
}

}  // namespace hive::audit
