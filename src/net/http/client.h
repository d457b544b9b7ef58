#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "net/http/message.h"

namespace hive::net::http {

struct ClientResponse {
  unsigned status = 0;
  Headers headers;  ///< names in lower case
  std::string body;

  /// The first value of a header (lower-case name); empty when absent.
  [[nodiscard]] std::string_view header(std::string_view name) const;
};

/// What both clients can be asked.
struct RequestOptions {
  std::string method = "GET";
  std::string url;  ///< http or https, without user and password
  Headers headers;
  std::string body;
  std::chrono::milliseconds connect_timeout = std::chrono::seconds(10);
  std::chrono::milliseconds timeout = std::chrono::seconds(40);  ///< for the whole exchange; 0: none
  std::size_t max_response_bytes = std::size_t{64} << 20;        ///< of the body, also of a streamed one
  std::string ca_certificate_path;                               ///< empty: the system's store
  bool verify_tls = true;
  std::string client_certificate_path;  ///< PEM, shown to a server that asks for one; empty: none
  std::string client_key_path;          ///< PEM, of that certificate
};

struct ClientRequest : RequestOptions {
  /// Set to get the body as it arrives (server-sent events) instead of in the response; return false to stop.
  std::function<bool(std::string_view)> on_data;
  /// With on_data: called once before the first piece, with status and headers. Return false to have the body collected
  /// in the response instead, as for an error that is no stream.
  std::function<bool(const ClientResponse&)> on_head;
  /// The exchange is given up as soon as this descriptor is readable; -1: never.
  int cancel_fd = -1;
};

/// Sends one request and waits for the answer (libcurl). Blocks: for command-line programs and the blocking pool.
/// Connections are kept per thread; the callbacks must not send requests themselves. Redirects are not followed.
/// Proxies of the environment are used, but never for a loopback host. The program must ignore SIGPIPE.
/// Errors name the host and say what failed. Their codes tell how far the request came:
///   invalid_argument    the request itself is wrong (URL, header, CA file); nothing was sent
///   unavailable         name, connection or TLS handshake failed; nothing was sent
///   permission_denied   the server's certificate is not trusted; nothing was sent
///   timed_out, io       the answer did not come (completely); the server may have acted on the request
///   resource_exhausted  the answer is larger than allowed
///   cancelled           cancel_fd became readable, or on_data returned false
Result<ClientResponse> perform(const ClientRequest& request);

/// Whether a URL's host ("localhost", "127.0.0.1", "[::1]") is this machine and needs neither proxy nor encryption.
bool is_loopback_host(std::string_view host);

}  // namespace hive::net::http
