#pragma once

#include <map>
#include <mutex>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "gateway/audit/log.h"
#include "gateway/surfaces/mcp/core.h"

namespace hive::mcp_surface {

/// Beginnings and ends of sessions for the audit log. Nobody can flood the log by opening sessions: beyond a number a
/// minute and identity they are counted, and the next entry says how many. Thread-safe.
class SessionEvents {
 public:
  SessionEvents(audit::Log* log, const Clock& clock) : log_(log), clock_(clock) {}

  void record(const Client& client, std::string_view action, std::string detail);

 private:
  static constexpr unsigned max_a_minute = 60;
  static constexpr std::size_t max_identities = 4096;

  struct Window {
    SteadyTime since;
    unsigned recorded = 0;
    std::uint64_t omitted = 0;
  };

  audit::Log* const log_;
  const Clock& clock_;
  std::mutex mutex_;
  std::map<std::string, Window> windows_;  // by identity; guarded by mutex_
};

}  // namespace hive::mcp_surface
