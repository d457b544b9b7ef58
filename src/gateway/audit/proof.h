#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "crypto/ssh_key.h"
#include "gateway/audit/checkpoint.h"

namespace hive::audit {

/// That one entry stands in a log: the entry, about log2(n) hashes, and the signed checkpoint to which they lead.
struct EntryProof {
  std::string entry;  ///< the line, as it stands in the log
  std::uint64_t seq = 0;
  std::uint64_t size = 0;
  std::vector<crypto::Digest> hashes;
  std::string checkpoint;  ///< a signed note
};

/// Reads a log once and makes the proof for entry `seq` against its last checkpoint. The log is not judged further; a
/// proof from a bad log fails its check.
Result<EntryProof> prove_entry(const std::string& path, std::uint64_t seq);

std::string proof_to_json(const EntryProof& proof);
Result<EntryProof> proof_from_json(std::string_view text);

/// Checks a proof with the host's public key alone; returns the checkpoint that it leads to. An empty `origin` accepts
/// the one that the checkpoint names.
Result<Checkpoint> check_proof(const EntryProof& proof, std::string_view origin, const crypto::PublicKey& key);

}  // namespace hive::audit
