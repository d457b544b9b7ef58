#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"
#include "crypto/merkle.h"
#include "crypto/signed_note.h"
#include "crypto/ssh_key.h"

/// Checkpoints: the signed statement of how many entries a log has and what their Merkle root is (C2SP tlog-checkpoint
/// in a signed note). In the log's file a checkpoint is one line behind the entries that it covers.
namespace hive::audit {

/// The purpose for which a checkpoint's SSH signature is made: `ssh-keygen -Y verify -n <this>`.
inline constexpr std::string_view ssh_signature_namespace = "myrmex-audit-checkpoint";

struct Checkpoint {
  std::string origin;  ///< names the log, and the key in its note
  std::uint64_t size = 0;
  crypto::Digest root{};
  std::string time;  ///< RFC 3339, when it was signed; an extension line of the text
};

/// The text that is signed: origin, size and root, and the time as an extension line.
std::string checkpoint_text(const Checkpoint& checkpoint);
Result<Checkpoint> parse_checkpoint_text(std::string_view text);

/// A checkpoint as it stands in the file.
struct SealedCheckpoint {
  Checkpoint checkpoint;
  std::string note;           ///< the whole signed note
  std::string ssh_signature;  ///< base64 of an SSHSIG of the note's text; empty if this one carries none
};

/// Signs. With `ssh_signature`, a second signature that stock ssh-keygen can check.
SealedCheckpoint seal(Checkpoint checkpoint, const crypto::PrivateKey& key, bool ssh_signature);

/// The line for the file, without newline.
std::string checkpoint_line(const SealedCheckpoint& sealed);
[[nodiscard]] bool is_checkpoint_line(std::string_view line);
/// Takes a line apart; verifies no signature. Refuses every spelling but the one of checkpoint_line().
Result<SealedCheckpoint> parse_checkpoint_line(std::string_view line);

/// Whether `key` signed this checkpoint, with both signatures if it carries two. permission_denied: another key did.
Result<void> verify_checkpoint(const SealedCheckpoint& sealed, const crypto::PublicKey& key);

/// Reads a signed note from elsewhere (a remembered checkpoint, a proof) and verifies it. An empty `origin` accepts the
/// one it names.
Result<Checkpoint> verify_checkpoint_note(std::string_view note, std::string_view origin, const crypto::PublicKey& key);

}  // namespace hive::audit
