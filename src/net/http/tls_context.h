#pragma once

#include <memory>
#include <string>

#include "base/result.h"

using SSL_CTX = struct ssl_ctx_st;
using SSL = struct ssl_st;

namespace hive::net::http {

struct SslContextDeleter {
  void operator()(SSL_CTX* context) const;
};
struct SslDeleter {
  void operator()(SSL* ssl) const;
};
using SslContextPointer = std::unique_ptr<SSL_CTX, SslContextDeleter>;
using SslPointer = std::unique_ptr<SSL, SslDeleter>;

/// A server's TLS settings: TLS 1.2 with forward-secret AEAD suites, and TLS 1.3; no compression, no renegotiation;
/// ALPN "http/1.1". The key file must belong to its owner alone. With `client_ca_path`, clients are asked for a
/// certificate of its authorities. Errors name the file.
Result<SslContextPointer> make_server_tls_context(const std::string& certificate_path, const std::string& key_path,
                                                  const std::string& client_ca_path = "");

/// A new server-side session on the non-blocking socket `fd`, which it does not own. Writes to a closed peer fail
/// without raising SIGPIPE, which OpenSSL's own socket BIO would.
Result<SslPointer> make_server_tls_session(SSL_CTX* context, int fd);

/// The oldest error in this thread's OpenSSL queue as text; empties the queue.
std::string take_tls_error();

}  // namespace hive::net::http
