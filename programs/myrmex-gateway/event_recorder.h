#pragma once

#include <string>

#include "base/clock.h"
#include "base/log.h"
#include "gateway/audit/log.h"
#include "gateway/policy/rate_limiter.h"
#include "net/ssh/line_channel.h"

namespace hive::gateway {

/// Writes what happens outside of calls into the audit log, where there is one; agents coming and going also into the
/// program's own log. Thread-safe.
class EventRecorder {
 public:
  EventRecorder(audit::Log* log, const Clock& clock)
      : log_(log), refusals_(1, 10'000, clock), presence_(30, 100'000, clock) {}

  void gateway_started(const std::string& detail) { record("gateway_start", "system", {}, {}, detail); }
  void gateway_stopped(const std::string& detail) { record("gateway_stop", "system", {}, {}, detail); }
  void configuration_reloaded(bool applied, const std::string& detail) {
    record("config_reload", "system", {}, applied ? "" : "refused", detail);
  }
  /// At most 30 of each an id and minute: one key must not fill the disk by connecting again and again. What flaps is
  /// told by the other two.
  void agent_online(const std::string& agent, const net::ssh::Peer& peer);
  void agent_offline(const std::string& agent, const std::string& reason);
  /// One id is used from several addresses at once.
  void agent_contested(const std::string& agent, const std::string& detail);
  /// One id connects again and again.
  void agent_flapping(const std::string& agent, const std::string& detail);
  /// An enrolment that the last run of the gateway had begun.
  void enrolment_completed(const std::string& agent) {
    record("agent_enrolled", "system", agent, "recovered", "the gateway had ended before the key was in its file");
  }
  /// What happened to a server behind the gateway.
  void upstream(const std::string& name, const std::string& action, const std::string& detail) {
    log::info("upstream", {{"name", name}, {"event", action}, {"detail", detail}});
    record(action, "upstream", name, {}, detail);
  }
  /// A connection that ended before it was a tunnel; at most one entry a source and minute, so that nobody can flood
  /// the log.
  void tunnel_refused(const std::string& address, const std::string& user, const std::string& reason);

 private:
  void record(std::string action, std::string surface, std::string agent, std::string reason, std::string detail);

  audit::Log* const log_;
  policy::RateLimiter refusals_;
  policy::RateLimiter presence_;
};

}  // namespace hive::gateway
