#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "crypto/ssh_key.h"
#include "gateway/audit/record.h"

namespace hive::audit {

struct LogOptions {
  std::string path;
  std::string origin;  ///< names the log in its checkpoints (C2SP tlog-checkpoint): visible ASCII without space and "+"
  std::chrono::milliseconds max_delay =
      std::chrono::milliseconds(5);  ///< how long an entry that nobody waits for may stay unwritten
  std::chrono::milliseconds idle_checkpoint =
      std::chrono::hours(1);  ///< a checkpoint at least this often, also when nothing happens
  std::chrono::milliseconds ssh_signature_interval =
      std::chrono::seconds(1);  ///< a checkpoint carries an SSH signature at most this often, and the last one of a
                                ///< quiet log always does
  std::chrono::milliseconds retry_interval =
      std::chrono::seconds(1);         ///< after a failed write, how soon to try again if nobody asks
  size_t max_arguments_bytes = 16384;  ///< at most 128 KiB count
  size_t max_queued_entries = 65536;
  size_t max_queued_bytes = size_t{64} << 20;
  const Clock* clock = &system_clock();
};

/// What open() found and did.
struct RecoveryReport {
  std::uint64_t entries = 0;         ///< in the log after open(), with the one that tells of the repair
  std::uint64_t repaired_bytes = 0;  ///< of a torn tail, moved aside and recorded in the log
  std::string torn_path;             ///< where they are now; empty if nothing was torn
};

/// The append-only audit log: one writer thread, group commit, one signature a durable batch (DESIGN section 8).
/// Thread-safe. One process may hold a log open; a second is refused.
///
/// What stands behind the last checkpoint after a crash was never acknowledged to anybody, and without a signature
/// nobody can tell it from lines that were added meanwhile. So it is moved to a file beside the log, and an entry with
/// the action "log_recovered" says so; it is never signed after the fact.
class Log {
 public:
  /// Opens or creates the log, repairs a torn tail visibly, refuses a log that fails verification.
  static Result<std::unique_ptr<Log>> open(LogOptions options, crypto::PrivateKey key);

  /// Writes what is queued, then a last checkpoint.
  virtual ~Log() = default;

  /// Queues a record. `on_durable` (may be empty: nobody waits) is called from the writer's thread with the entry's
  /// sequence number once it and its checkpoint are on disk, or with the error for which it is not. It must not block,
  /// and must not call flush().
  /// Returns resource_exhausted when the queue is full, and for an intent with `on_durable` the reason of the last
  /// failure when a write has failed a moment ago; then nothing was queued.
  /// When a write fails, everybody who waits is told the reason. An intent is withdrawn then, because what it announces
  /// must not happen. Every other entry tells what has happened: it stays queued and is written when writing works
  /// again. What found no room meanwhile is counted in an entry with the action "log_write_resumed".
  virtual Result<void> append(Record record,
                              std::move_only_function<void(Result<std::uint64_t>)> on_durable = nullptr) = 0;

  /// Waits until everything queued is on disk, or until writing it failed. For shutdown and tests.
  virtual Result<void> flush() = 0;

  /// Whether the last write succeeded; the reason if not. The log tries again by itself.
  [[nodiscard]] virtual Result<void> health() const = 0;
  [[nodiscard]] virtual const RecoveryReport& recovery() const = 0;
  /// Entries on disk.
  [[nodiscard]] virtual std::uint64_t size() const = 0;
};

}  // namespace hive::audit
