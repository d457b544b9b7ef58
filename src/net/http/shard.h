#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "net/http/request_parser.h"
#include "net/runtime/runtime.h"

namespace hive::net::http {

class Connection;
struct ServerState;

/// The connections of one worker, and what they share so that an idle one holds next to nothing: buffers and parsers.
/// All members but load() belong to the worker.
class Shard {
 public:
  Shard(Worker& worker, std::chrono::milliseconds sweep_period);
  ~Shard();
  Shard(const Shard&) = delete;
  Shard& operator=(const Shard&) = delete;

  [[nodiscard]] Worker& worker() { return worker_; }
  /// Connections here or on their way here. Thread-safe; the acceptor counts up, remove() counts down.
  [[nodiscard]] std::atomic<std::size_t>& load() { return load_; }

  /// Takes the connection and starts it; after close_all() it is closed instead.
  void add(std::shared_ptr<Connection> connection);
  void remove(Connection& connection);
  /// Ends idle connections; the others end with their answer.
  void drain();
  /// Ends idle connections whose client certificate was verified under settings that no longer hold.
  void close_outdated();
  /// Ends all connections, now and for good.
  void close_all();

  std::unique_ptr<RequestParser> acquire_parser(const ParserLimits& limits);
  void release_parser(std::unique_ptr<RequestParser> parser);

  /// For one read, until the bytes are consumed.
  std::vector<char> read_buffer;
  /// For building one response, until it is handed to the kernel.
  std::string write_buffer;

 private:
  void sweep();
  void schedule_sweep();

  Worker& worker_;
  const std::chrono::milliseconds sweep_period_;
  std::atomic<std::size_t> load_ = 0;
  std::vector<std::shared_ptr<Connection>> connections_;  // each knows its index
  std::vector<std::unique_ptr<RequestParser>> parsers_;
  Timer sweep_timer_;
  bool sweeping_ = false;
  bool closed_ = false;
};

}  // namespace hive::net::http
