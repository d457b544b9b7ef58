#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "crypto/ssh_key.h"
#include "gateway/audit/checkpoint.h"

namespace hive::audit {

struct VerifyOptions {
  crypto::PublicKey key = {};               ///< the gateway's host key
  std::string origin = {};                  ///< empty: the one that the log names
  std::vector<Checkpoint> remembered = {};  ///< verified checkpoints from earlier: the log must go on from each
  std::uint64_t min_size = 0;               ///< entries that the log must have at least
  bool every_signature = false;             ///< verify the signature of every checkpoint, not only of the last
  std::chrono::milliseconds patience =
      std::chrono::seconds(2);  ///< how long a gateway that is writing may take to finish its batch
};

/// The first thing that is wrong with a log.
struct VerifyFailure {
  std::uint64_t line = 0;  ///< 1 is the first; 0 when no single line is to blame
  std::string reason;
};

/// A repair that the log itself tells of.
struct RecoveryNote {
  std::uint64_t seq = 0;
  std::string time;
  std::string action;  ///< "log_recovered" or "log_write_resumed"
  std::string detail;
};

struct VerifyReport {
  std::uint64_t entries = 0;
  std::uint64_t checkpoints = 0;
  std::uint64_t lines = 0;
  std::uint64_t bytes = 0;
  std::map<std::string, std::uint64_t, std::less<>> by_kind;
  std::map<std::string, std::uint64_t, std::less<>> by_outcome;
  std::uint64_t intents_without_outcome = 0;
  std::vector<std::string> open_call_ids;  ///< of those intents, the first few
  std::vector<RecoveryNote> recoveries;
  std::string first_time;
  std::string last_time;
  std::string origin;
  std::optional<SealedCheckpoint> last_checkpoint;
  bool last_signed = false;                  ///< the key in the options signed last_checkpoint
  std::int64_t longest_silence_seconds = 0;  ///< between two checkpoints: a log that runs has one an hour
  std::optional<VerifyFailure> failure;

  [[nodiscard]] bool good() const { return !failure; }
};

/// Verifies a log, all of it or what was added since the last look. Needs no more than the file and a public key.
/// Memory does not grow with the log, but with the calls that have no outcome yet. Not thread-safe.
class Verifier {
 public:
  explicit Verifier(VerifyOptions options);
  ~Verifier();
  Verifier(Verifier&&) noexcept;
  Verifier& operator=(Verifier&&) noexcept;

  /// Reads on from where the last call ended, at least to the size that the file has now, and to a checkpoint. A
  /// gateway that is writing is given a moment to finish its batch. An error means that the file could not be read;
  /// whether the log is good is in the report. After a failure in the report, further calls change nothing.
  Result<void> update(const std::string& path);

  [[nodiscard]] const VerifyReport& report() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Verifies a whole log.
Result<VerifyReport> verify_log(const std::string& path, VerifyOptions options);

}  // namespace hive::audit
