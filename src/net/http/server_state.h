#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "net/http/connection_limits.h"
#include "net/http/request_parser.h"
#include "net/http/server.h"
#include "net/http/tls_context.h"

namespace hive::net::http {

class Shard;

/// What the connections of one server share. Thread-safe where it changes.
struct ServerState {
  ServerState(ServerOptions server_options, Handler request_handler);
  ~ServerState();
  ServerState(const ServerState&) = delete;
  ServerState& operator=(const ServerState&) = delete;

  /// Of new connections; null without TLS.
  std::shared_ptr<SSL_CTX> tls_context() const {
    std::lock_guard lock(tls_mutex);
    return tls;
  }
  void set_tls_context(std::shared_ptr<SSL_CTX> context) {
    std::lock_guard lock(tls_mutex);
    tls = std::move(context);
  }

  /// For requests that never reach the handler: unique in this process, and in the debug log beside the reason.
  std::string next_refusal_id() {
    return refusal_id_prefix + std::to_string(next_refusal.fetch_add(1, std::memory_order_relaxed));
  }

  /// Whether a warning about a peer may be written now: at most one a minute, so that a flood of connections is none of
  /// log lines.
  bool may_warn() {
    auto now = std::chrono::steady_clock::now().time_since_epoch().count();
    auto quiet_until = next_warning.load(std::memory_order_relaxed);
    if (now < quiet_until) return false;
    auto next = now + std::chrono::steady_clock::duration(std::chrono::minutes(1)).count();
    return next_warning.compare_exchange_strong(quiet_until, next, std::memory_order_relaxed);
  }

  const ServerOptions options;
  const Handler handler;
  const ParserLimits parser_limits;
  const std::size_t max_source_body_bytes;  // of max_buffered_body_bytes
  const std::shared_ptr<ConnectionLimits> limits;
  std::vector<std::unique_ptr<Shard>> shards;  // filled before the first connection
  std::atomic<bool> draining = false;
  std::atomic<std::size_t> buffered_body_bytes = 0;

 private:
  const std::string refusal_id_prefix = fmt::format("h-{:08x}-", std::random_device()());
  std::atomic<std::uint64_t> next_refusal = 1;
  std::atomic<std::chrono::steady_clock::rep> next_warning = 0;
  mutable std::mutex tls_mutex;
  std::shared_ptr<SSL_CTX> tls;  // guarded by tls_mutex
};

}  // namespace hive::net::http
