#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/unique_fd.h"
#include "net/http/message.h"
#include "net/http/tls_context.h"

namespace hive::net::http {

/// A non-blocking TCP connection, with TLS or without. One thread at a time. Never owns the descriptor.
class Transport {
 public:
  enum class Status {
    ok,
    want_read,   ///< try again when the descriptor is readable
    want_write,  ///< try again when the descriptor is writable
    closed,      ///< the peer ended its sending side
    failed,
  };
  struct Outcome {
    Status status = Status::failed;
    std::size_t count = 0;  ///< bytes moved, when ok
  };

  /// `ssl` may be null: plaintext.
  Transport(int fd, SslPointer ssl) : fd_(fd), ssl_(std::move(ssl)) {}

  [[nodiscard]] bool is_tls() const { return ssl_ != nullptr; }
  /// Whether a failed handshake looks like plain HTTP.
  [[nodiscard]] bool met_plain_http() const { return met_plain_http_; }

  Outcome handshake();
  /// After the handshake: what the client has shown and TLS has verified; null if nothing.
  [[nodiscard]] std::shared_ptr<const ClientCertificate> client_certificate() const;
  /// After a failed handshake: what was wrong with the client's certificate; empty if that was not the reason.
  [[nodiscard]] std::string client_certificate_problem() const;
  [[nodiscard]] bool belongs_to(const SSL_CTX* context) const;
  Outcome read_some(std::span<char> buffer);
  /// With `more_follows` the kernel may wait for the next piece before it sends a packet.
  Outcome write_some(std::string_view data, bool more_follows = false);
  /// Whether decrypted bytes wait that will not make the descriptor readable.
  [[nodiscard]] bool has_buffered_input() const;
  /// Says to the peer that nothing more will come; best effort.
  void end_sending();
  /// From here on reads and writes go around TLS. For the last words on a connection whose handshake failed.
  void abandon_tls() { ssl_.reset(); }

 private:
  Outcome tls_outcome(int result);

  int fd_;
  SslPointer ssl_;
  bool tls_failed_ = false;
  bool met_plain_http_ = false;
};

}  // namespace hive::net::http
