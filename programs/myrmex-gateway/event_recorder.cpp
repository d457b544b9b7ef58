#include "event_recorder.h"

#include "base/log.h"
#include "base/strings.h"

namespace hive::gateway {

void EventRecorder::agent_online(const std::string& agent, const net::ssh::Peer& peer) {
  if (presence_.try_acquire("online", agent)) return;
  log::info("agent online", {{"agent", agent}, {"address", peer.address}, {"key", peer.key_fingerprint}});
  record("agent_online", "ssh", agent, {},
         fmt::format("from {} with key {}, {}", peer.address, peer.key_fingerprint, peer.software));
}

void EventRecorder::agent_offline(const std::string& agent, const std::string& reason) {
  if (presence_.try_acquire("offline", agent)) return;
  log::info("agent offline", {{"agent", agent}, {"reason", reason}});
  record("agent_offline", "ssh", agent, {}, reason);
}

void EventRecorder::agent_contested(const std::string& agent, const std::string& detail) {
  log::warning("connections of an agent replace each other", {{"agent", agent}, {"detail", detail}});
  record("agent_contested", "ssh", agent, "contested", detail);
}

void EventRecorder::agent_flapping(const std::string& agent, const std::string& detail) {
  log::warning("an agent connects again and again", {{"agent", agent}, {"detail", detail}});
  record("agent_flapping", "ssh", agent, "flapping", detail);
}

void EventRecorder::tunnel_refused(const std::string& address, const std::string& user, const std::string& reason) {
  if (refusals_.try_acquire("ssh", address)) return;
  record("tunnel_refused", "ssh", check_agent_id(user) ? user : "", "refused",
         fmt::format("from {} as {}: {}", address, quote(user), reason));
}

void EventRecorder::record(std::string action, std::string surface, std::string agent, std::string reason,
                           std::string detail) {
  if (log_ == nullptr) return;
  audit::Record record;
  record.kind = audit::RecordKind::event;
  record.principal = "gateway";
  record.role = "system";
  record.surface = std::move(surface);
  record.action = std::move(action);
  record.agent = std::move(agent);
  record.reason = std::move(reason);
  record.detail = std::move(detail);
  std::string name = record.action;
  if (auto queued = log_->append(std::move(record)); !queued) {
    log::error("an event is not recorded", {{"action", name}, {"reason", queued.error().message}});
  }
}

}  // namespace hive::gateway
