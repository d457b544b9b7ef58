#include "gateway/audit/proof.h"

#include <algorithm>

#include "base/strings.h"
#include "gateway/audit/chain.h"
#include "gateway/audit/line_reader.h"
#include "gateway/audit/log_source.h"
#include "protocol/json.h"

namespace hive::audit {

namespace {

constexpr std::string_view format_name = "myrmex-audit-proof/1";
constexpr size_t max_hashes = 64;
// The entry is text inside a JSON string here, which at worst doubles its escapes.
constexpr json::Limits limits = {.max_bytes = size_t{4} << 20, .max_depth = 3, .max_values = 256};

// The size of the last checkpoint, so that the proof can be made in the one pass that follows.
Result<SealedCheckpoint> find_last_checkpoint(const LogSource& source, const std::string& path) {
  LineReader reader(source.fd.get(), path);
  std::string last;
  while (auto line = TRY(reader.next())) {
    if (is_checkpoint_line(*line)) last = *line;
    if (reader.offset() >= source.size) break;
  }
  if (last.empty()) return fail(ErrorCode::corrupt, "{}: it has no checkpoint, so nothing can be proved", path);
  return TRY_CONTEXT(path, parse_checkpoint_line(last));
}

Result<std::string> required_text(std::span<const json::Member> members, std::string_view key) {
  auto raw = json::find(members, key);
  auto text = raw ? json::decode_string(*raw) : std::nullopt;
  if (!text) return fail(ErrorCode::invalid_argument, "proof: \"{}\" is missing or no text", key);
  return std::move(*text);
}

Result<std::uint64_t> required_number(std::span<const json::Member> members, std::string_view key) {
  auto raw = json::find(members, key);
  auto number = raw ? json::decode_integer(*raw) : std::nullopt;
  if (!number || *number < 0) return fail(ErrorCode::invalid_argument, "proof: \"{}\" is missing or no number", key);
  return static_cast<std::uint64_t>(*number);
}

Result<crypto::Digest> parse_hash(std::string_view raw) {
  auto text = json::decode_string(raw);
  auto bytes = text ? from_base64(*text) : std::unexpected(Error{});
  crypto::Digest digest{};
  if (!bytes || bytes->size() != digest.size()) {
    return fail(ErrorCode::invalid_argument, "proof: \"hashes\" holds something that is no SHA-256 in base64");
  }
  std::ranges::copy(*bytes, digest.begin());
  return digest;
}

}  // namespace

Result<EntryProof> prove_entry(const std::string& path, std::uint64_t seq) {
  LogSource source = TRY(LogSource::open(path));
  SealedCheckpoint sealed = TRY(find_last_checkpoint(source, path));
  EntryProof proof;
  proof.seq = seq;
  proof.size = sealed.checkpoint.size;
  proof.checkpoint = std::move(sealed.note);
  if (seq >= proof.size) {
    return fail(ErrorCode::not_found, "{}: there is no entry {}; the last checkpoint covers {} entries", path, seq,
                proof.size);
  }
  crypto::MerkleHasher hasher;
  crypto::RangeRoots ranges(crypto::inclusion_ranges(seq, proof.size));
  LineReader reader(source.fd.get(), path);
  for (std::uint64_t index = 0; index < proof.size;) {
    auto line = TRY(reader.next());
    if (!line) return fail(ErrorCode::corrupt, "{}: it has fewer entries than its last checkpoint says", path);
    if (is_checkpoint_line(*line)) continue;
    if (index == seq) proof.entry = *line;
    ranges.add(hasher, hasher.leaf(*line));
    ++index;
  }
  proof.hashes = TRY(ranges.finish(hasher));
  return proof;
}

std::string proof_to_json(const EntryProof& proof) {
  std::string out =
      fmt::format("{{\"format\":\"{}\",\"seq\":{},\"size\":{},\"entry\":", format_name, proof.seq, proof.size);
  json::append_string(out, proof.entry);
  out += ",\"hashes\":[";
  for (size_t i = 0; i < proof.hashes.size(); ++i) {
    if (i > 0) out += ',';
    json::append_string(out, to_base64(proof.hashes[i]));
  }
  out += "],\"checkpoint\":";
  json::append_string(out, proof.checkpoint);
  return out += "}\n";
}

Result<EntryProof> proof_from_json(std::string_view text) {
  auto members = TRY_CONTEXT("proof", json::parse_object(trim(text), limits));
  std::string format = TRY(required_text(members, "format"));
  if (format != format_name) {
    return fail(ErrorCode::invalid_argument, "proof: format {} is unknown; expected {}", quote(format), format_name);
  }
  EntryProof proof;
  proof.seq = TRY(required_number(members, "seq"));
  proof.size = TRY(required_number(members, "size"));
  proof.entry = TRY(required_text(members, "entry"));
  proof.checkpoint = TRY(required_text(members, "checkpoint"));
  auto raw_hashes = json::find(members, "hashes");
  if (!raw_hashes) return fail(ErrorCode::invalid_argument, "proof: \"hashes\" is missing");
  auto hashes = TRY_CONTEXT("proof", json::parse_array(*raw_hashes, limits));
  if (hashes.size() > max_hashes) {
    return fail(ErrorCode::invalid_argument, "proof: {} hashes are more than any log needs", hashes.size());
  }
  for (std::string_view raw : hashes)
    proof.hashes.push_back(TRY(parse_hash(raw)));
  return proof;
}

Result<Checkpoint> check_proof(const EntryProof& proof, std::string_view origin, const crypto::PublicKey& key) {
  Checkpoint checkpoint = TRY_CONTEXT("proof", verify_checkpoint_note(proof.checkpoint, origin, key));
  if (checkpoint.size != proof.size) {
    return fail(ErrorCode::corrupt, "proof: it is for a log of {} entries, but the signed checkpoint says {}",
                proof.size, checkpoint.size);
  }
  // The number in the line is what people read; the place in the tree is what was proved.
  EntryView entry = TRY_CONTEXT("proof: not an entry", EntryView::parse(proof.entry));
  if (entry.seq() != proof.seq) {
    return fail(ErrorCode::corrupt, "proof: the entry says it is number {}, the proof says {}", entry.seq(), proof.seq);
  }
  crypto::MerkleHasher hasher;
  TRY(crypto::check_inclusion(hasher.leaf(proof.entry), proof.seq, checkpoint.size, proof.hashes, checkpoint.root));
  return checkpoint;
}

}  // namespace hive::audit
