#include "gateway/surfaces/mcp/session_events.h"

#include "base/log.h"

namespace hive::mcp_surface {

void SessionEvents::record(const Client& client, std::string_view action, std::string detail) {
  if (log_ == nullptr) return;
  {
    std::lock_guard lock(mutex_);
    SteadyTime now = clock_.steady_now();
    if (windows_.size() >= max_identities) {
      std::erase_if(windows_, [&](const auto& each) { return now - each.second.since >= std::chrono::minutes(1); });
    }
    Window& window = windows_[client.principal.identity()];
    if (window.since == SteadyTime() || now - window.since >= std::chrono::minutes(1)) {
      window.since = now;
      window.recorded = 0;
    }
    if (window.recorded >= max_a_minute) {
      ++window.omitted;
      return;
    }
    ++window.recorded;
    if (std::uint64_t omitted = std::exchange(window.omitted, 0); omitted > 0) {
      detail += fmt::format("; {} more beginnings and ends of sessions before this are not recorded", omitted);
    }
  }
  audit::Record record;
  record.kind = audit::RecordKind::event;
  record.request_id = client.request_id;
  record.principal = client.principal.name;
  record.role = policy::to_string(client.principal.role);
  record.surface = calls::to_string(client.surface);
  record.action = action;
  record.detail = std::move(detail);
  if (auto queued = log_->append(std::move(record)); !queued) {
    log::error("an MCP session is not in the audit log", {{"action", action}, {"reason", queued.error().message}});
  }
}

}  // namespace hive::mcp_surface
