#include "net/http/shard.h"

#include "net/http/connection.h"

namespace hive::net::http {

namespace {
constexpr std::size_t read_buffer_bytes = 65536;
constexpr std::size_t max_spare_parsers = 64;
}  // namespace

Shard::Shard(Worker& worker, std::chrono::milliseconds sweep_period)
    : read_buffer(read_buffer_bytes), worker_(worker), sweep_period_(sweep_period) {}

Shard::~Shard() = default;

void Shard::add(std::shared_ptr<Connection> connection) {
  connection->shard_index = connections_.size();
  connections_.push_back(connection);
  if (closed_) return connection->close();
  connection->start();
  if (!sweeping_) schedule_sweep();
}

void Shard::remove(Connection& connection) {
  std::size_t index = connection.shard_index;
  // Kept until the lists are in order: the last owner may be this one.
  std::shared_ptr<Connection> removed = std::move(connections_[index]);
  if (index + 1 != connections_.size()) {
    connections_[index] = std::move(connections_.back());
    connections_[index]->shard_index = index;
  }
  connections_.pop_back();
  load_.fetch_sub(1, std::memory_order_relaxed);
}

void Shard::drain() {
  for (const std::shared_ptr<Connection>& connection : std::vector(connections_))
    connection->close_if_idle();
}

void Shard::close_outdated() {
  for (const std::shared_ptr<Connection>& connection : std::vector(connections_)) {
    if (connection->is_outdated()) connection->close_if_idle();
  }
}

void Shard::close_all() {
  sweep_timer_.cancel();
  closed_ = true;
  for (const std::shared_ptr<Connection>& connection : std::vector(connections_))
    connection->close();
}

void Shard::schedule_sweep() {
  sweeping_ = true;
  sweep_timer_ = worker_.schedule(sweep_period_, [this] { sweep(); });
}

void Shard::sweep() {
  auto now = std::chrono::steady_clock::now();
  std::vector<std::shared_ptr<Connection>> expired;
  for (const std::shared_ptr<Connection>& connection : connections_) {
    if (connection->deadline() <= now) expired.push_back(connection);
  }
  for (const std::shared_ptr<Connection>& connection : expired)
    connection->on_deadline();
  sweeping_ = false;
  if (!connections_.empty() && !closed_) schedule_sweep();
}

std::unique_ptr<RequestParser> Shard::acquire_parser(const ParserLimits& limits) {
  if (parsers_.empty()) return std::make_unique<RequestParser>(limits);
  std::unique_ptr<RequestParser> parser = std::move(parsers_.back());
  parsers_.pop_back();
  return parser;
}

void Shard::release_parser(std::unique_ptr<RequestParser> parser) {
  if (!parser || parsers_.size() >= max_spare_parsers) return;
  parser->reset();
  parsers_.push_back(std::move(parser));
}

}  // namespace hive::net::http
