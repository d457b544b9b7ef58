#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "net/http/message.h"

namespace hive::net::http {

class Connection;

/// One request on its way: the handler's end of a connection. May be used and dropped on any thread, also after the
/// connection has gone. Dropped without an answer it answers 500; a stream dropped before its end is cut off.
class Exchange final : public Responder, public Stream, public std::enable_shared_from_this<Exchange> {
 public:
  Exchange(std::weak_ptr<Connection> connection, Worker& worker, std::uint64_t number, std::size_t max_queue_bytes);
  ~Exchange() override;
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  void respond(Response response) override;
  std::shared_ptr<Stream> respond_stream(Response head) override;
  void on_disconnect(Task task) override;

  bool send(std::string_view piece) override;
  [[nodiscard]] std::size_t queued_bytes() const override {
    return posted_.load(std::memory_order_relaxed) + unsent_.load(std::memory_order_relaxed);
  }
  void end() override;

  /// From the connection: the client is gone.
  void mark_gone() { gone_.store(true, std::memory_order_relaxed); }
  /// From the connection: bytes that the kernel has not taken yet.
  void set_unsent(std::size_t bytes) { unsent_.store(bytes, std::memory_order_relaxed); }

 private:
  enum class Progress { waiting, streaming, finished };

  std::weak_ptr<Connection> connection_;
  Worker& worker_;
  const std::uint64_t number_;
  const std::size_t max_queue_bytes_;
  std::atomic<Progress> progress_ = Progress::waiting;
  std::atomic<bool> gone_ = false;
  std::atomic<std::size_t> posted_ = 0;  // bytes on their way to the worker
  std::atomic<std::size_t> unsent_ = 0;
};

}  // namespace hive::net::http
