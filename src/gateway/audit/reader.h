#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "gateway/audit/checkpoint.h"
#include "protocol/outcome.h"

namespace hive::audit {

/// Which entries of a log are wanted. Empty fields match everything.
struct Query {
  std::string principal = {};   ///< exact
  std::string agent = {};       ///< exact
  std::string action = {};      ///< exact
  std::string tool = {};        ///< exact
  std::string call_id = {};     ///< exact
  std::string request_id = {};  ///< exact; of a call of many agents, that of all of them
  std::string reason = {};      ///< exact
  std::optional<protocol::Outcome> outcome = {};
  std::string since = {};                        ///< RFC 3339 in UTC ("2026-11-30T12:57:23Z", or the beginning of one)
  std::string until = {};                        ///< the same; entries of this very moment are included
  std::optional<std::uint64_t> before_seq = {};  ///< only older entries: the next page
  size_t limit = 200;                            ///< entries to return; at most 1000 count
};

/// Whether a text is a time in UTC as Query takes it, or the beginning of one that has at least the year.
bool is_time_prefix(std::string_view text);

struct Page {
  std::vector<std::string> entries;         ///< raw lines, newest first, at most 8 MiB in all
  std::optional<std::uint64_t> before_seq;  ///< ask with this for the next page; absent at the beginning of the log
};

/// Reads a log backwards from its last checkpoint, so that the newest entries cost the same however long the log is.
/// One call looks at no more than 64 MiB; if that was not enough, the page is short, and `before_seq` says where to go
/// on. The log is not verified. Safe while a gateway writes it, and from any thread.
Result<Page> read_entries(const std::string& path, const Query& query);

/// The newest checkpoint of a log that carries an SSH signature. Nothing is verified.
Result<SealedCheckpoint> read_ssh_signed_checkpoint(const std::string& path);

}  // namespace hive::audit
