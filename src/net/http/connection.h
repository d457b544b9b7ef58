#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <boost/asio/basic_stream_socket.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>

#include "net/http/connection_limits.h"
#include "net/http/exchange.h"
#include "net/http/message.h"
#include "net/http/request_parser.h"
#include "net/http/response_writer.h"
#include "net/http/server_state.h"
#include "net/http/shard.h"
#include "net/http/transport.h"

namespace hive::net::http {

/// One accepted connection: a state machine on its worker, driven by the readiness of its descriptor and by the shard's
/// sweep of deadlines. One request is answered at a time; pipelined ones wait, bounded, in its input.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  // A concrete executor: the type-erased one costs an allocation an operation.
  using Socket = boost::asio::basic_stream_socket<boost::asio::ip::tcp, boost::asio::io_context::executor_type>;
  using Deadline = std::chrono::steady_clock::time_point;

  struct Addresses {
    std::string peer;
    std::string local;
  };

  Connection(std::shared_ptr<ServerState> server, Shard& shard, Socket socket, SslPointer ssl,
             ConnectionLimits::Slot slot, Addresses addresses);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  /// Begins to read. The shard owns the connection from before this call until close().
  void start();
  /// Ends the connection now, whatever it is doing.
  void close();
  void close_if_idle();
  /// Whether it was opened by a client certificate, and the server's TLS settings have been read again since.
  [[nodiscard]] bool is_outdated() const;
  [[nodiscard]] Deadline deadline() const { return deadline_; }
  void on_deadline();

  // From the exchange with this number, on the worker; without effect once that exchange is over.
  void respond(std::uint64_t number, Response response);
  void begin_stream(std::uint64_t number, Response head);
  void stream_piece(std::uint64_t number, std::string_view piece);
  void end_stream(std::uint64_t number);
  void cut_stream(std::uint64_t number);
  void set_disconnect_task(std::uint64_t number, Task task);

  std::size_t shard_index = 0;  ///< of the shard

 private:
  enum class Phase {
    handshaking,
    reading,    // waiting for a request, or within one
    working,    // the handler has it
    streaming,  // the handler sends its answer piece by piece
    writing,    // the last bytes of an answer are on their way
    lingering,  // all is said; reading until the peer has closed too, so that our last bytes are not lost to a reset
    closed,
  };
  enum class Stage { idle, head, body };

  void wait_readable();
  void wait_writable();
  void on_readable();
  void on_writable();
  void continue_handshake();
  void receive();
  void discard_input();
  void on_peer_closed();
  void process(std::string_view fresh);
  void update_stage();
  /// Counts what has arrived of a body; a refusal when that is too much.
  std::optional<Refusal> account_body();
  void release_body_account();
  void dispatch();
  void refuse(Refusal refusal);

  void write(std::string_view bytes, std::string body);
  void flush();
  void on_written();
  void finish_answer();
  void linger();
  void run_disconnect_task();
  [[nodiscard]] bool has_enough_input() const;
  [[nodiscard]] bool is_current(std::uint64_t number) const { return number == number_ && exchange_open_; }

  std::shared_ptr<ServerState> server_;
  Shard& shard_;
  Socket socket_;
  Transport transport_;
  ConnectionLimits::Slot slot_;
  Addresses addresses_;
  std::shared_ptr<const ClientCertificate> client_certificate_;

  Phase phase_ = Phase::reading;
  Stage stage_ = Stage::head;
  Deadline deadline_;
  std::unique_ptr<RequestParser> parser_;  // while a request is being read
  std::string input_;                      // received, not parsed yet
  std::string output_;                     // to be written; the first output_written_ bytes are
  std::string output_body_;                // after output_: a large body that was not worth a copy
  std::size_t output_written_ = 0;
  std::size_t counted_body_bytes_ = 0;

  std::weak_ptr<Exchange> exchange_;
  std::uint64_t number_ = 0;
  Task disconnect_task_;
  std::size_t lingered_bytes_ = 0;
  bool exchange_open_ = false;
  bool keep_alive_ = true;
  bool is_http_1_0_ = false;
  bool is_head_request_ = false;
  bool is_chunked_ = false;
  bool sent_continue_ = false;
  bool processing_ = false;
  bool waiting_readable_ = false;
  bool waiting_writable_ = false;
  bool peer_closed_ = false;
};

}  // namespace hive::net::http
