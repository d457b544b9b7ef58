#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "forwarder/journal_entry.h"
#include "forwarder/position.h"

struct sd_journal;

namespace hive::forwarder {

/// Reads a folder of journal files in order, and goes on as they grow. One thread.
class JournalReader {
 public:
  /// `position`: where an earlier reader stood; entries up to there do not come again. When the journal does not know
  /// the place, because the root that it lay in was thrown away, everything in it is new.
  static Result<JournalReader> open(const std::string& folder, const std::optional<Position>& position);

  /// The next entry, or nullopt when there is none now.
  Result<std::optional<JournalEntry>> next();
  /// Readable when something may have changed; then call has_changed().
  [[nodiscard]] int fd() const { return fd_; }
  /// How long to wait on fd() at most.
  [[nodiscard]] std::chrono::milliseconds patience() const;
  /// Takes note of changes: new files, new entries.
  Result<void> refresh();

 private:
  struct Close {
    void operator()(sd_journal* journal) const;
  };
  JournalReader() = default;
  Result<void> seek(const std::optional<Position>& position);
  [[nodiscard]] std::string field(const char* name) const;
  Result<JournalEntry> current() const;

  std::unique_ptr<sd_journal, Close> journal_;
  std::optional<Position> passed_;  // entries of that boot up to there are known
  int fd_ = -1;
};

}  // namespace hive::forwarder
