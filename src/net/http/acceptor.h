#pragma once

#include <chrono>
#include <cstdint>
#include <memory>

#include <boost/asio/basic_socket_acceptor.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>

#include "base/result.h"
#include "base/unique_fd.h"
#include "net/http/server_state.h"

namespace hive::net::http {

/// Accepts connections on one worker and spreads them over the shards. Unless said otherwise, for that worker alone.
class Acceptor : public std::enable_shared_from_this<Acceptor> {
 public:
  static Result<std::shared_ptr<Acceptor>> create(std::shared_ptr<ServerState> server, Worker& worker,
                                                  UniqueFd listener);

  /// Any thread, before start().
  [[nodiscard]] std::uint16_t port() const { return port_; }
  [[nodiscard]] Worker& worker() { return worker_; }

  void start() { wait(); }
  void stop();

 private:
  using Socket = boost::asio::basic_socket_acceptor<boost::asio::ip::tcp, boost::asio::io_context::executor_type>;

  Acceptor(std::shared_ptr<ServerState> server, Worker& worker);
  void wait();
  void accept_ready();
  void admit(UniqueFd fd, const boost::asio::ip::tcp::endpoint& peer);
  void pause(int error_number);
  /// Whether a warning may be written now; at most one a minute, so that a flood of connections is none of log lines.
  bool may_warn();

  std::shared_ptr<ServerState> server_;
  Worker& worker_;
  Socket socket_;
  std::uint16_t port_ = 0;
  Timer pause_;
  std::chrono::steady_clock::time_point quiet_until_;
};

}  // namespace hive::net::http
