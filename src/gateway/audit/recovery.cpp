#include "gateway/audit/recovery.h"

#include <optional>

#include "base/strings.h"
#include "gateway/audit/chain.h"
#include "gateway/audit/line_reader.h"

namespace hive::audit {

namespace {

// The log up to a checkpoint.
struct Sealed {
  SealedCheckpoint checkpoint;
  crypto::MerkleTree tree;
  std::uint64_t end_offset = 0;
};

struct BadLine {
  std::uint64_t number = 0;
  std::string reason;
  bool has_nul = false;  // blocks of a file that a power failure left unwritten read as zeros
};

struct Scan {
  std::optional<Sealed> sealed;
  std::uint64_t entries_behind = 0;  // good ones behind the last checkpoint
  std::optional<BadLine> bad;
  std::uint64_t checkpoints_behind_bad = 0;
  bool ends_in_checkpoint = false;

  // A checkpoint is written last, so a crash leaves one behind a bad line only where the disk lost a block of the very
  // last batch. Everything else is damage to what was acknowledged.
  [[nodiscard]] bool is_damaged() const {
    if (!bad || checkpoints_behind_bad == 0) return false;
    return !bad->has_nul || checkpoints_behind_bad > 1 || !ends_in_checkpoint;
  }
};

Result<Scan> scan_log(const LogFile& file, const std::string& path, const std::string& origin) {
  Scan scan;
  Chain chain(origin);
  LineReader reader(file.fd(), path);
  std::uint64_t line_number = 0;
  while (true) {
    auto next = reader.next();
    ++line_number;
    if (!next && next.error().code != ErrorCode::corrupt) return std::unexpected(std::move(next).error());
    if (!next) {
      // A line without end: nothing behind it can be told apart any more, and no writer of ours makes one.
      return fail(ErrorCode::corrupt, "{}; keep the file as evidence, and move it away to begin a new log",
                  next.error().message);
    }
    if (!*next) return scan;
    std::string_view line = **next;
    scan.ends_in_checkpoint = is_checkpoint_line(line);
    if (scan.bad) {
      scan.checkpoints_behind_bad += scan.ends_in_checkpoint ? 1 : 0;
      continue;
    }
    auto added = chain.add(line);
    if (!added) {
      bool has_nul = line.find('\0') != std::string_view::npos;
      scan.bad.emplace(line_number, std::move(added).error().message, has_nul);
      scan.checkpoints_behind_bad = scan.ends_in_checkpoint ? 1 : 0;
      continue;
    }
    if (*added == Chain::Line::checkpoint) {
      scan.sealed.emplace(*chain.last_checkpoint(), chain.tree(), reader.offset());
    }
    scan.entries_behind = chain.unsealed_entries();
  }
}

// A file without any checkpoint can only be a new log whose first line was cut short.
Result<void> check_is_ours(const LogFile& file, const std::string& path) {
  LineReader reader(file.fd(), path);
  auto first = reader.next();
  constexpr std::string_view start = "{\"checkpoint\":\"";
  if (first && !*first) {
    std::string_view text = reader.unterminated();
    if (text.find_first_not_of('\0') == std::string_view::npos) return {};
    if (text.substr(0, start.size()) == start.substr(0, text.size())) return {};
  }
  return fail(ErrorCode::corrupt,
              "{}: not an audit log of this gateway, or its checkpoints were removed; it is left untouched. Move it "
              "away or name another path",
              path);
}

Result<void> check_signature(const Sealed& sealed, const std::string& path, const crypto::PublicKey& key) {
  auto verified = verify_checkpoint(sealed.checkpoint, key);
  if (verified) return {};
  if (verified.error().code == ErrorCode::permission_denied) {
    return fail(ErrorCode::permission_denied,
                "{}: this audit log was signed by another host key than {}; bring the old host key back, or move the "
                "log away to begin a new one",
                path, key.fingerprint());
  }
  return fail(ErrorCode::corrupt, "{}: its last checkpoint is not genuine: {}", path, verified.error().message);
}

}  // namespace

Result<RecoveredLog> recover_log(LogFile& file, const std::string& path, const std::string& origin,
                                 const crypto::PublicKey& key) {
  RecoveredLog recovered;
  if (file.size() == 0) return recovered;
  Scan scan = TRY(scan_log(file, path, origin));
  if (scan.is_damaged()) {
    return fail(ErrorCode::corrupt,
                "{}: line {} is bad: {}. The log was damaged or changed; keep it as evidence (myrmex audit verify), "
                "and move it away to begin a new one",
                path, scan.bad->number, scan.bad->reason);
  }
  std::uint64_t good_end = 0;
  if (scan.sealed) {
    TRY(check_signature(*scan.sealed, path, key));
    recovered.tree = std::move(scan.sealed->tree);
    good_end = scan.sealed->end_offset;
  } else {
    TRY(check_is_ours(file, path));
  }
  if (good_end == file.size()) return recovered;
  recovered.torn_bytes = file.size() - good_end;
  recovered.torn_entries = scan.entries_behind;
  recovered.torn_path = TRY(file.move_tail_aside(good_end, recovered.tree.size()));
  return recovered;
}

}  // namespace hive::audit
