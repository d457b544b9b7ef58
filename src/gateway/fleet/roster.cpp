#include "gateway/fleet/roster.h"

#include <algorithm>
#include <utility>

namespace hive::fleet {

namespace {

constexpr auto id_of = [](const AgentPointer& agent) -> std::string_view { return agent->id; };

}  // namespace

AgentPointer* Roster::slot(std::string_view agent) {
  auto found = std::ranges::lower_bound(agents_, agent, {}, id_of);
  return found != agents_.end() && (*found)->id == agent ? &*found : nullptr;
}

void Roster::put(AgentStatus status, bool is_to_be_written) {
  if (is_to_be_written) unwritten_.insert(status.id);
  auto place = std::ranges::lower_bound(agents_, std::string_view(status.id), {}, id_of);
  bool is_known = place != agents_.end() && (*place)->id == status.id;
  auto shared = std::make_shared<const AgentStatus>(std::move(status));
  if (is_known) {
    *place = std::move(shared);
  } else {
    agents_.insert(place, std::move(shared));
  }
  ++version_;
}

void Roster::erase(std::string_view agent) {
  auto place = std::ranges::lower_bound(agents_, agent, {}, id_of);
  if (place == agents_.end() || (*place)->id != agent) return;
  std::string id((*place)->id);
  agents_.erase(place);
  entries_.erase(id);
  flapping_.erase(id);
  keyless_.erase(id);
  unwritten_.insert(std::move(id));
  ++version_;
}

void Roster::change(std::string_view agent, const std::function<void(AgentStatus&)>& how) {
  AgentPointer* known = slot(agent);
  if (known == nullptr) return;
  AgentStatus next = **known;
  how(next);
  put(std::move(next), true);
}

void Roster::load(std::vector<AgentStatus> agents) {
  std::ranges::sort(agents, {}, &AgentStatus::id);
  std::lock_guard lock(mutex_);
  agents_.reserve(agents_.size() + agents.size());
  for (AgentStatus& agent : agents) {
    if (agent.keyless_since != WallTime()) keyless_.insert(agent.id);
    put(std::move(agent), false);
  }
}

Roster::Arrival Roster::connected(const net::ssh::Peer& peer, bool replaces) {
  WallTime now = clock_.wall_now();
  SteadyTime steady_now = clock_.steady_now();
  std::lock_guard lock(mutex_);
  Entry& entry = entries_[peer.user];
  if (entry.activity == nullptr) entry.activity = std::make_shared<AgentActivity>();
  entry.activity->last_seen_ns.store(now.time_since_epoch().count(), std::memory_order_relaxed);
  entry.is_to_be_forgotten = false;
  entry.flaps.add(peer.address, replaces, steady_now, now);
  if (entry.flaps.flapping() != nullptr) flapping_.insert(peer.user);
  const AgentPointer* known = slot(peer.user);
  // What it said of itself the last time holds until it says something else.
  AgentStatus status = known == nullptr ? AgentStatus() : **known;
  status.id = peer.user;
  status.address = peer.address;
  status.key_fingerprint = peer.key_fingerprint;
  status.software = peer.software;
  status.online = true;
  status.connected_at = now;
  status.last_seen = now;
  if (status.first_seen == WallTime()) status.first_seen = now;
  status.offline_since = {};
  status.offline_reason.clear();
  status.keyless_since = {};
  keyless_.erase(peer.user);
  ++status.connections;
  if (replaces) ++status.replacements;
  status.flapping = entry.flaps.flapping();
  status.tools = nullptr;
  status.activity = entry.activity;
  bool contested = status.flapping != nullptr && status.flapping->contested;
  put(std::move(status), true);
  return {.activity = entry.activity, .news = entry.flaps.take_news(steady_now), .contested = contested};
}

void Roster::disconnected(std::string_view agent, const std::string& reason) {
  std::lock_guard lock(mutex_);
  auto entry = entries_.find(agent);
  if (entry != entries_.end() && entry->second.is_to_be_forgotten) return erase(agent);
  change(agent, [&](AgentStatus& status) {
    status.online = false;
    status.last_seen = status.seen();
    status.offline_since = clock_.wall_now();
    status.offline_reason = reason;
    status.tools = nullptr;
  });
}

void Roster::described(std::string_view agent, AgentStatus description) {
  std::lock_guard lock(mutex_);
  const AgentPointer* known = slot(agent);
  bool is_same =
      known == nullptr ||
      ((*known)->os_version == description.os_version && (*known)->agent_version == description.agent_version &&
       (*known)->running_services == description.running_services && (*known)->open_ports == description.open_ports);
  if (is_same) return;
  change(agent, [&](AgentStatus& status) {
    status.os_version = std::move(description.os_version);
    status.agent_version = std::move(description.agent_version);
    status.running_services = std::move(description.running_services);
    status.open_ports = std::move(description.open_ports);
  });
}

void Roster::listed(std::string_view agent, std::shared_ptr<const ToolList> tools) {
  std::lock_guard lock(mutex_);
  const AgentPointer* known = slot(agent);
  if (known == nullptr || (*known)->tools == tools) return;
  AgentStatus next = **known;
  next.tools = std::move(tools);
  put(std::move(next), false);
}

void Roster::set_enrolled(std::span<const std::string> ids) {
  std::vector<std::string_view> sorted(ids.begin(), ids.end());
  std::ranges::sort(sorted);
  WallTime now = clock_.wall_now();
  std::lock_guard lock(mutex_);
  std::vector<std::string_view> missing;
  for (std::string_view id : sorted)
    if (slot(id) == nullptr) missing.push_back(id);
  std::vector<std::string> gone;
  for (const AgentPointer& agent : agents_) {
    bool has_key = std::ranges::binary_search(sorted, std::string_view(agent->id));
    if (has_key != (agent->keyless_since == WallTime())) gone.push_back(agent->id);
  }
  for (const std::string& id : gone) {
    const AgentStatus& agent = **slot(id);
    bool has_key = agent.keyless_since != WallTime();
    if (!has_key && !agent.has_connected()) {
      erase(id);
      continue;
    }
    if (has_key) {
      keyless_.erase(id);
    } else {
      keyless_.insert(id);
    }
    change(id, [&](AgentStatus& status) { status.keyless_since = has_key ? WallTime() : now; });
  }
  for (std::string_view id : missing) {
    AgentStatus status;
    status.id = id;
    // The file says so at every start; it need not be written down.
    put(std::move(status), false);
  }
}

void Roster::forget(std::string_view agent) {
  std::lock_guard lock(mutex_);
  const AgentPointer* known = slot(agent);
  if (known == nullptr) return;
  if (!(*known)->online) return erase(agent);
  entries_[std::string(agent)].is_to_be_forgotten = true;
}

void Roster::settle(std::chrono::seconds keyless_for) {
  SteadyTime steady_now = clock_.steady_now();
  WallTime now = clock_.wall_now();
  std::lock_guard lock(mutex_);
  std::erase_if(flapping_, [&](const std::string& id) {
    auto entry = entries_.find(id);
    if (entry == entries_.end()) return true;
    if (!entry->second.flaps.settle(steady_now)) return false;
    change(id, [](AgentStatus& status) { status.flapping = nullptr; });
    return true;
  });
  std::vector<std::string> expired;
  for (const std::string& id : keyless_) {
    const AgentPointer* agent = slot(id);
    if (agent != nullptr && !(*agent)->online && now - (*agent)->keyless_since >= keyless_for) expired.push_back(id);
  }
  for (const std::string& id : expired)
    erase(id);
}

SnapshotPointer Roster::snapshot() const {
  std::lock_guard lock(mutex_);
  if (snapshot_ == nullptr || snapshot_->version != version_) {
    snapshot_ = std::make_shared<const FleetSnapshot>(FleetSnapshot{version_, agents_});
  }
  return snapshot_;
}

AgentPointer Roster::find(std::string_view agent) const {
  std::lock_guard lock(mutex_);
  auto found = std::ranges::lower_bound(agents_, agent, {}, id_of);
  return found != agents_.end() && (*found)->id == agent ? *found : nullptr;
}

Roster::Changes Roster::take_changes() {
  std::lock_guard lock(mutex_);
  Changes changes;
  for (const std::string& id : unwritten_) {
    const AgentPointer* agent = slot(id);
    if (agent == nullptr) {
      changes.forgotten.push_back(id);
    } else {
      changes.changed.push_back(*agent);
    }
  }
  unwritten_.clear();
  return changes;
}

void Roster::put_back(const Changes& changes) {
  std::lock_guard lock(mutex_);
  for (const AgentPointer& agent : changes.changed)
    unwritten_.insert(agent->id);
  unwritten_.insert(changes.forgotten.begin(), changes.forgotten.end());
}

}  // namespace hive::fleet
