#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "crypto/ssh_key.h"

/// Signed notes (C2SP signed-note): a text that people can read, with signature lines below.
namespace hive::crypto {

using NoteKeyId = std::array<std::uint8_t, 4>;

/// Whether `name` may name a key: 1 to 200 visible ASCII characters without "+". C2SP allows more; nothing needs it.
bool is_note_key_name(std::string_view name);

/// The id of an Ed25519 key under a name: the first bytes of SHA-256(name || 0x0A || 0x01 || key).
NoteKeyId note_key_id(std::string_view name, const PublicKey& key);

/// The verifier key in the form that other tools for signed notes take: "name+hex id+base64 key".
std::string note_verifier_key(std::string_view name, const PublicKey& key);

struct NoteSignature {
  std::string name;
  NoteKeyId key_id{};
  std::vector<std::uint8_t> signature;
};

/// A note taken apart; nothing has been verified.
struct Note {
  std::string text;  ///< ends in a newline; this is what is signed
  std::vector<NoteSignature> signatures;
};

/// `text` must end in a newline and must not hold control characters.
std::string sign_note(std::string_view text, std::string_view name, const PrivateKey& key);

Result<Note> parse_note(std::string_view encoded);

/// Parses a note and returns its text if `key` has signed it under `name`. Signatures by other keys are ignored.
/// permission_denied: no signature by this key; corrupt: the signature by this key does not verify.
Result<std::string> verify_note(std::string_view encoded, std::string_view name, const PublicKey& key);

/// The same for a note that is already taken apart.
Result<void> verify_note(const Note& note, std::string_view name, const PublicKey& key);

}  // namespace hive::crypto
