#include "crypto/signed_note.h"

#include <algorithm>

#include "base/strings.h"
#include "base/utf8.h"
#include "crypto/sha256.h"

namespace hive::crypto {

namespace {

constexpr size_t max_note_bytes = 65536;
constexpr size_t max_signatures = 16;
constexpr std::uint8_t ed25519_algorithm = 1;
constexpr std::string_view signature_prefix = "\u2014 ";  // an em dash and a space

Result<NoteSignature> parse_signature_line(std::string_view line) {
  if (!line.starts_with(signature_prefix)) {
    return fail(ErrorCode::corrupt, "signed note: a signature line does not begin with an em dash");
  }
  line.remove_prefix(signature_prefix.size());
  size_t space = line.find(' ');
  if (space == std::string_view::npos || !is_note_key_name(line.substr(0, space))) {
    return fail(ErrorCode::corrupt, "signed note: a signature line names no key");
  }
  auto bytes = TRY_CONTEXT("signed note", from_base64(line.substr(space + 1)));
  if (bytes.size() <= NoteKeyId().size()) return fail(ErrorCode::corrupt, "signed note: a signature is too short");
  NoteSignature signature;
  signature.name = line.substr(0, space);
  std::copy_n(bytes.begin(), signature.key_id.size(), signature.key_id.begin());
  signature.signature.assign(bytes.begin() + static_cast<std::ptrdiff_t>(signature.key_id.size()), bytes.end());
  return signature;
}

}  // namespace

bool is_note_key_name(std::string_view name) {
  return !name.empty() && name.size() <= 200 &&
         std::ranges::all_of(name, [](char c) { return c > 0x20 && c < 0x7f && c != '+'; });
}

NoteKeyId note_key_id(std::string_view name, const PublicKey& key) {
  Sha256 hasher;
  hasher.update(name);
  hasher.update(std::uint8_t{'\n'});
  hasher.update(ed25519_algorithm);
  hasher.update(key.ed25519());
  Digest digest = hasher.finish();
  NoteKeyId id{};
  std::copy_n(digest.begin(), id.size(), id.begin());
  return id;
}

std::string note_verifier_key(std::string_view name, const PublicKey& key) {
  std::vector<std::uint8_t> encoded = {ed25519_algorithm};
  auto raw = key.ed25519();
  encoded.insert(encoded.end(), raw.begin(), raw.end());
  return fmt::format("{}+{}+{}", name, to_hex(note_key_id(name, key)), to_base64(encoded));
}

std::string sign_note(std::string_view text, std::string_view name, const PrivateKey& key) {
  NoteKeyId id = note_key_id(name, key.public_key());
  auto signature = key.sign(as_bytes(text));
  std::vector<std::uint8_t> bytes(id.begin(), id.end());
  bytes.insert(bytes.end(), signature.begin(), signature.end());
  return fmt::format("{}\n{}{} {}\n", text, signature_prefix, name, to_base64(bytes));
}

Result<Note> parse_note(std::string_view encoded) {
  if (encoded.size() > max_note_bytes) {
    return fail(ErrorCode::corrupt, "signed note of {} bytes is larger than {}", encoded.size(), max_note_bytes);
  }
  if (!utf8::is_valid(encoded)) return fail(ErrorCode::corrupt, "signed note is not valid UTF-8");
  if (std::ranges::any_of(encoded, [](unsigned char c) { return c < 0x20 && c != '\n'; })) {
    return fail(ErrorCode::corrupt, "signed note has control characters");
  }
  size_t border = encoded.rfind("\n\n");
  if (border == std::string_view::npos || !encoded.ends_with('\n') || border + 2 >= encoded.size()) {
    return fail(ErrorCode::corrupt, "signed note has no signatures below its text");
  }
  Note note;
  note.text = encoded.substr(0, border + 1);
  std::string_view lines = encoded.substr(border + 2);
  lines.remove_suffix(1);
  for (std::string_view line : split(lines, '\n')) {
    if (note.signatures.size() == max_signatures) {
      return fail(ErrorCode::corrupt, "signed note has more than {} signatures", max_signatures);
    }
    note.signatures.push_back(TRY(parse_signature_line(line)));
  }
  return note;
}

Result<void> verify_note(const Note& note, std::string_view name, const PublicKey& key) {
  NoteKeyId id = note_key_id(name, key);
  for (const NoteSignature& signature : note.signatures) {
    if (signature.name != name || signature.key_id != id) continue;
    if (key.verify(as_bytes(note.text), signature.signature)) return {};
    return fail(ErrorCode::corrupt, "the signature of {} is wrong: the text was changed", quote(name));
  }
  return fail(ErrorCode::permission_denied, "not signed by key {} under the name {}", key.fingerprint(), quote(name));
}

Result<std::string> verify_note(std::string_view encoded, std::string_view name, const PublicKey& key) {
  Note note = TRY(parse_note(encoded));
  TRY(verify_note(note, name, key));
  return std::move(note.text);
}

}  // namespace hive::crypto
