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
  std::string origin;  ///< names the log in its checkpoints (C2SP tlog-checkpoint)
  std::chrono::milliseconds max_delay =
      std::chrono::milliseconds(5);  ///< how long an entry that nobody waits for may stay unwritten
  std::chrono::milliseconds idle_checkpoint =
      std::chrono::hours(1);  ///< a checkpoint at least this often, also when nothing happens
  size_t max_arguments_bytes = 16384;
  size_t max_queued_entries = 65536;
  const Clock* clock = &system_clock();
};

/// What open() found and did.
struct RecoveryReport {
  std::uint64_t entries = 0;
  std::uint64_t repaired_bytes = 0;  ///< of a torn tail, moved aside and recorded in the log
};

/// The append-only audit log: one writer thread, group commit, one signature a durable batch (DESIGN section 8).
/// Thread-safe. One process may hold a log open; a second is refused.
class Log {
 public:
  /// Opens or creates the log, repairs a torn tail visibly, refuses a log that fails verification.
  static Result<std::unique_ptr<Log>> open(LogOptions options, crypto::PrivateKey key);
  virtual ~Log() = default;

  /// Queues a record. `on_durable` (may be empty: nobody waits) is called from the writer's thread with the entry's
  /// sequence number once it and its checkpoint are on disk, or with the error for which it is not. It must not block.
  /// Returns resource_exhausted when the queue is full and io when the log cannot be written now; then nothing was
  /// queued.
  virtual Result<void> append(Record record,
                              std::move_only_function<void(Result<std::uint64_t>)> on_durable = nullptr) = 0;

  /// Waits until everything queued is on disk. For shutdown and tests.
  virtual Result<void> flush() = 0;

  /// Whether the last write succeeded; the reason if not. The log tries again by itself.
  [[nodiscard]] virtual Result<void> health() const = 0;
  [[nodiscard]] virtual const RecoveryReport& recovery() const = 0;
  /// Entries on disk.
  [[nodiscard]] virtual std::uint64_t size() const = 0;
};

}  // namespace hive::audit
