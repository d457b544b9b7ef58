#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"
#include "net/http/message.h"
#include "net/runtime/runtime.h"

namespace hive::net::http {

struct ServerOptions {
  std::string listen_address = {};        ///< "HOST:PORT", ":PORT", "[::1]:0"
  bool loopback_only = false;             ///< refuse to bind anything but a loopback address
  std::string tls_certificate_path = {};  ///< both empty: plaintext
  std::string tls_key_path = {};
  /// PEM file of the authorities whose client certificates are accepted; empty: clients are not asked for one.
  std::string client_ca_path = {};
  std::size_t max_header_bytes = 16384;
  std::size_t max_body_bytes = std::size_t{1} << 20;
  std::chrono::milliseconds header_timeout = std::chrono::seconds(10);
  std::chrono::milliseconds body_timeout = std::chrono::seconds(30);
  std::chrono::milliseconds idle_timeout = std::chrono::seconds(120);
  std::chrono::milliseconds write_timeout = std::chrono::seconds(30);
  std::size_t max_connections = 4096;
  std::size_t max_connections_per_source = 1024;  ///< a source is an IPv4 address or an IPv6 /64
  /// Bodies that are still arriving, over all connections; beyond it requests are answered 503. One source gets an
  /// eighth of it, though always enough for one whole body; beyond that its requests are answered 429.
  std::size_t max_buffered_body_bytes = std::size_t{64} << 20;
  /// What one stream may have queued for a client that does not read before a further piece cuts it.
  std::size_t max_stream_queue_bytes = std::size_t{1} << 20;
  /// Sent with every response that does not set the same header itself.
  Headers default_headers = {
      {"X-Content-Type-Options", "nosniff"},
      {"Cache-Control", "no-store"},
      {"Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'"},
      {"Referrer-Policy", "no-referrer"},
  };
};

/// An HTTP/1.1 server (RFC 9112) on the runtime's workers. Malformed requests are answered with 4xx as
/// application/problem+json (RFC 9457) and closed, never passed on. A client that ends its sending side before the
/// answer counts as gone for on_disconnect, but still gets the answer if one is given.
/// Destroy it before the runtime, and stop the runtime before destroying what the handler refers to: destroying the
/// server closes its connections, but a handler may be running meanwhile.
class Server {
 public:
  /// Binds and starts to accept. Errors name the address or the file.
  static Result<std::unique_ptr<Server>> listen(Runtime& runtime, ServerOptions options, Handler handler);
  virtual ~Server() = default;
  [[nodiscard]] virtual std::uint16_t port() const = 0;
  /// No new connections; idle ones are closed, busy ones after their answer. Thread-safe.
  virtual void drain() = 0;
  /// Connections that are open now; after drain() it falls to 0 as the last answers are written. Thread-safe.
  [[nodiscard]] virtual std::size_t open_connections() const = 0;
  /// Reads certificate, key and client authorities again; on failure the old ones stay. Connections that were opened
  /// by a client certificate have to be opened again. Thread-safe.
  virtual Result<void> reload_certificate() = 0;
};

}  // namespace hive::net::http
