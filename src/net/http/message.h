#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "net/runtime/runtime.h"

namespace hive::net::http {

using Headers = std::vector<std::pair<std::string, std::string>>;

/// A client's certificate that TLS has verified against the server's client CA.
struct ClientCertificate {
  std::string common_name;  ///< of the subject; empty if it has none, has two, or it is not sound UTF-8 text
  std::string fingerprint;  ///< SHA-256 of the certificate, hexadecimal
  WallTime expires_at;      ///< a connection may last longer than the certificate by which it was opened
};

/// One request, read completely within the server's limits.
struct Request {
  std::string method;
  std::string path;   ///< percent-decoded, without query; no NUL, no invalid UTF-8, no "." or ".." segment
  std::string query;  ///< raw
  Headers headers;    ///< names in lower case
  std::string body;
  std::string peer_address;   ///< without port; an IPv4 peer of an IPv6 socket in IPv4 form, a zone id kept
  std::string local_address;  ///< the address of ours that the client reached, in the same form
  bool is_tls = false;
  std::shared_ptr<const ClientCertificate> client_certificate = {};  ///< null: none was shown
  Worker* worker = nullptr;                                          ///< of this connection

  /// The single value of a header (lower-case name); nullopt when absent or repeated.
  [[nodiscard]] std::optional<std::string_view> header(std::string_view name) const;
  /// The decoded value of a query parameter.
  [[nodiscard]] std::optional<std::string> query_parameter(std::string_view name) const;
};

struct Response {
  unsigned status = 200;
  std::string content_type = "application/json";
  Headers headers = {};
  std::string body = {};
};

/// A response that is sent piece by piece (server-sent events). Thread-safe.
class Stream {
 public:
  virtual ~Stream() = default;
  /// Queues a piece of any size; false when the client is gone or reads so slowly that the bounded queue was full
  /// before (then the stream is cut).
  virtual bool send(std::string_view piece) = 0;
  /// What is queued and the client has not taken yet, for who can wait before it sends more.
  [[nodiscard]] virtual std::size_t queued_bytes() const = 0;
  virtual void end() = 0;
};

/// Answers one request, exactly once. Thread-safe.
class Responder {
 public:
  virtual ~Responder() = default;
  virtual void respond(Response response) = 0;
  virtual std::shared_ptr<Stream> respond_stream(Response head) = 0;
  /// Called on the connection's worker if the client goes away before the answer was written completely.
  virtual void on_disconnect(Task task) = 0;
};

using Handler = std::function<void(std::shared_ptr<Request> request, std::shared_ptr<Responder> responder)>;

}  // namespace hive::net::http
