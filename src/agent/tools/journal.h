#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace hive::agent {

/// What to read from the systemd journal; texts as the caller gave them.
struct JournalQuery {
  std::int64_t lines = 50;
  std::optional<std::string> unit;
  std::optional<std::string> since;
  std::optional<std::string> priority;

  [[nodiscard]] bool is_specific() const { return unit || since || priority; }
};

/// The arguments of journalctl for a query, without the program. Every value is checked against a strict form and
/// joined to its option, so that nothing can pass for an option. Failure: invalid_argument.
Result<std::vector<std::string>> journal_arguments(const JournalQuery& query);

/// Brings a point in time into the form that journalctl of every systemd version reads. Accepts
/// "2026-11-30T12:00:00Z", "2026-11-30 12:00:00", "2026-11-30" and spans into the past such as "-15min".
Result<std::string> journal_time(std::string_view text);

/// Splits what journalctl printed into entries: a message of several lines is one entry, whose further lines journalctl
/// indents.
std::vector<std::string> journal_entries(std::string_view output);

}  // namespace hive::agent
