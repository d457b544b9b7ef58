#include "gateway/fleet/last_known.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "base/log.h"
#include "base/strings.h"
#include "base/utf8.h"
#include "gateway/store/agent_table.h"
#include "gateway/store/database.h"
#include "protocol/json.h"

namespace hive::fleet {

namespace {

constexpr std::size_t max_text_bytes = 512;
constexpr std::size_t max_list_entries = 1024;

std::string to_json(const std::vector<std::string>& texts) {
  std::string array = "[";
  for (const std::string& text : texts) {
    if (array.size() > 1) array += ',';
    json::append_string(array, text);
  }
  return array + "]";
}

std::string bounded(std::string text) {
  text.resize(utf8::truncate(text, max_text_bytes).size());
  return text;
}

std::vector<std::string> to_texts(std::string_view array) {
  std::vector<std::string> texts;
  auto elements = json::parse_array(array, {.max_bytes = array.size()});
  if (!elements) return texts;
  for (std::string_view element : *elements) {
    if (texts.size() == max_list_entries) break;
    if (auto text = json::decode_string(element)) texts.push_back(bounded(*std::move(text)));
  }
  return texts;
}

std::optional<WallTime> unless_zero(WallTime time) {
  return time == WallTime() ? std::nullopt : std::optional(time);
}

store::AgentRow to_row(const AgentStatus& agent) {
  return {.id = agent.id,
          .address = agent.address,
          .key_fingerprint = agent.key_fingerprint,
          .software = agent.software,
          .os_version = agent.os_version,
          .agent_version = agent.agent_version,
          .services = to_json(agent.running_services),
          .ports = to_json(agent.open_ports),
          .first_seen = agent.first_seen,
          .connected_at = agent.connected_at,
          .last_seen = agent.seen(),
          .offline_since = agent.online ? std::nullopt : std::optional(agent.offline_since),
          .offline_reason = agent.offline_reason,
          .keyless_since = unless_zero(agent.keyless_since),
          .connections = agent.connections,
          .replacements = agent.replacements};
}

/// `ended_at`: when the gateway that wrote the row was last known to run.
AgentStatus from_row(store::AgentRow row, WallTime ended_at) {
  AgentStatus agent;
  agent.id = std::move(row.id);
  agent.address = bounded(std::move(row.address));
  agent.key_fingerprint = bounded(std::move(row.key_fingerprint));
  agent.software = bounded(std::move(row.software));
  agent.os_version = bounded(std::move(row.os_version));
  agent.agent_version = bounded(std::move(row.agent_version));
  agent.running_services = to_texts(row.services);
  agent.open_ports = to_texts(row.ports);
  agent.first_seen = row.first_seen;
  agent.connected_at = row.connected_at;
  agent.last_seen = row.last_seen;
  if (row.offline_since) {
    agent.offline_since = *row.offline_since;
    agent.offline_reason = bounded(std::move(row.offline_reason));
  } else {
    agent.last_seen = std::max(row.last_seen, ended_at);
    agent.offline_since = agent.last_seen;
    agent.offline_reason = "the gateway was ended from outside";
  }
  agent.keyless_since = row.keyless_since.value_or(WallTime());
  agent.connections = row.connections;
  agent.replacements = row.replacements;
  return agent;
}

class LastKnownImpl final : public LastKnown, public std::enable_shared_from_this<LastKnownImpl> {
 public:
  explicit LastKnownImpl(Dependencies dependencies)
      : given_(std::move(dependencies)), worker_(given_.runtime.worker(0)) {}

  Result<void> load() {
    Result<std::vector<store::AgentRow>> rows;
    Result<std::optional<WallTime>> alive;
    given_.database.run([&](store::Connection& connection) {
      store::AgentTable table(connection);
      rows = table.load();
      alive = table.last_alive();
    });
    if (!rows) return std::unexpected(rows.error());
    if (!alive) return std::unexpected(alive.error());
    std::vector<AgentStatus> agents;
    agents.reserve(rows->size());
    for (store::AgentRow& row : *rows) {
      if (!check_agent_id(row.id)) continue;
      agents.push_back(from_row(std::move(row), alive->value_or(WallTime())));
    }
    given_.roster.load(std::move(agents));
    return {};
  }

  void start() override {
    worker_.post([self = shared_from_this()] { self->wait(); });
  }

  Result<void> close() override {
    is_closed_ = true;
    Result<void> written;
    given_.database.run([&](store::Connection& connection) { written = write(connection); });
    return written;
  }

 private:
  void wait() {
    if (is_closed_) return;
    // Weak: the timer is a member, and a circle would keep both for ever.
    timer_ = worker_.schedule(write_interval, [weak = weak_from_this()] {
      if (auto self = weak.lock()) self->look();
    });
  }

  void look() {
    if (is_closed_) return;
    // One at a time: a slow disk makes batches larger, and their number no higher.
    given_.database.post([self = shared_from_this()](store::Connection& connection) {
      if (!self->is_closed_) self->write_and_tell(connection);
      self->worker_.post([self] { self->wait(); });
    });
  }

  void write_and_tell(store::Connection& connection) {
    given_.roster.settle(given_.keyless_for());
    Result<void> written = write(connection);
    if (!written && !std::exchange(is_failing_, true)) {
      log::error("what is known of the fleet cannot be written; it is kept in memory",
                 {{"reason", written.error().message}});
    }
    if (written) is_failing_ = false;
  }

  Result<void> write(store::Connection& connection) {
    store::AgentTable table(connection);
    Roster::Changes changes = given_.roster.take_changes();
    if (!changes.empty()) {
      std::vector<store::AgentRow> rows;
      rows.reserve(changes.changed.size());
      for (const AgentPointer& agent : changes.changed)
        rows.push_back(to_row(*agent));
      if (Result<void> written = table.write(rows, changes.forgotten); !written) {
        given_.roster.put_back(changes);
        return written;
      }
    }
    return note_alive(table);
  }

  Result<void> note_alive(store::AgentTable& table) {
    SteadyTime now = given_.clock.steady_now();
    if (noted_alive_at_ && now - *noted_alive_at_ < alive_interval) return {};
    // With nobody online there is nothing to tell.
    SnapshotPointer snapshot = given_.roster.snapshot();
    if (std::ranges::none_of(snapshot->agents, [](const AgentPointer& agent) { return agent->online; })) return {};
    TRY(table.note_alive(given_.clock.wall_now()));
    noted_alive_at_ = now;
    return {};
  }

  const Dependencies given_;
  net::Worker& worker_;
  net::Timer timer_;  // on the worker
  std::atomic<bool> is_closed_ = false;
  std::optional<SteadyTime> noted_alive_at_;  // on the store's thread
  bool is_failing_ = false;                   // on the store's thread
};

}  // namespace

Result<std::shared_ptr<LastKnown>> LastKnown::open(Dependencies dependencies) {
  auto impl = std::make_shared<LastKnownImpl>(std::move(dependencies));
  TRY(impl->load());
  return impl;
}

}  // namespace hive::fleet
