#include "gateway/store/agent_table.h"

#include "gateway/store/database.h"

namespace hive::store {

namespace {

constexpr std::string_view columns =
    "id, address, key_fingerprint, software, os_version, agent_version, services, ports, first_seen, connected_at,"
    " last_seen, offline_since, offline_reason, keyless_since, connections, replacements";

std::int64_t to_ms(WallTime time) {
  return std::chrono::floor<std::chrono::milliseconds>(time.time_since_epoch()).count();
}

std::optional<std::int64_t> to_ms(std::optional<WallTime> time) {
  return time ? std::optional(to_ms(*time)) : std::nullopt;
}

WallTime from_ms(std::int64_t ms) {
  return WallTime(std::chrono::milliseconds(ms));
}

std::optional<WallTime> optional_time(const Statement& row, int column) {
  return row.is_null(column) ? std::nullopt : std::optional(from_ms(row.number(column)));
}

AgentRow read_row(const Statement& row) {
  AgentRow agent;
  agent.id = row.text(0);
  agent.address = row.text(1);
  agent.key_fingerprint = row.text(2);
  agent.software = row.text(3);
  agent.os_version = row.text(4);
  agent.agent_version = row.text(5);
  agent.services = row.text(6);
  agent.ports = row.text(7);
  agent.first_seen = from_ms(row.number(8));
  agent.connected_at = from_ms(row.number(9));
  agent.last_seen = from_ms(row.number(10));
  agent.offline_since = optional_time(row, 11);
  agent.offline_reason = row.text(12);
  agent.keyless_since = optional_time(row, 13);
  agent.connections = static_cast<std::uint64_t>(row.number(14));
  agent.replacements = static_cast<std::uint64_t>(row.number(15));
  return agent;
}

Result<void> write_row(Statement& statement, const AgentRow& agent) {
  return statement.bind(0, agent.id)
      .bind(1, agent.address)
      .bind(2, agent.key_fingerprint)
      .bind(3, agent.software)
      .bind(4, agent.os_version)
      .bind(5, agent.agent_version)
      .bind(6, agent.services)
      .bind(7, agent.ports)
      .bind(8, to_ms(agent.first_seen))
      .bind(9, to_ms(agent.connected_at))
      .bind(10, to_ms(agent.last_seen))
      .bind(11, to_ms(agent.offline_since))
      .bind(12, agent.offline_reason)
      .bind(13, to_ms(agent.keyless_since))
      .bind(14, static_cast<std::int64_t>(agent.connections))
      .bind(15, static_cast<std::int64_t>(agent.replacements))
      .run();
}

}  // namespace

Result<std::vector<AgentRow>> AgentTable::load() {
  Statement query = TRY(connection_.prepare(fmt::format("SELECT {} FROM agents ORDER BY id", columns)));
  std::vector<AgentRow> rows;
  while (TRY(query.step()))
    rows.push_back(read_row(query));
  return rows;
}

Result<void> AgentTable::write(std::span<const AgentRow> rows, std::span<const std::string> forgotten) {
  return connection_.transaction([&](Connection& inside) -> Result<void> {
    Statement put = TRY(inside.prepare(fmt::format(
        "INSERT OR REPLACE INTO agents ({}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", columns)));
    for (const AgentRow& row : rows)
      TRY(write_row(put, row));
    Statement remove = TRY(inside.prepare("DELETE FROM agents WHERE id = ?"));
    for (const std::string& id : forgotten)
      TRY(remove.bind(0, id).run());
    return {};
  });
}

Result<void> AgentTable::note_alive(WallTime now) {
  Statement statement = TRY(connection_.prepare("INSERT OR REPLACE INTO gateway_alive (one, at) VALUES (1, ?)"));
  return statement.bind(0, to_ms(now)).run();
}

Result<std::optional<WallTime>> AgentTable::last_alive() {
  Statement query = TRY(connection_.prepare("SELECT at FROM gateway_alive"));
  if (!TRY(query.step())) return std::nullopt;
  return from_ms(query.number(0));
}

}  // namespace hive::store
