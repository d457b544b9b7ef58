#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"

/// Single steps of a connection, for `doctor`: an HTTP client does them all at once and cannot say what it saw.
namespace hive::cli {

struct Endpoint {
  std::string scheme;
  std::string host;  ///< IPv6 without brackets
  std::string port;
};

/// Of a URL that resolve_connection() accepted.
Result<Endpoint> endpoint_of(const std::string& url);

/// The addresses of a host name, as texts.
Result<std::vector<std::string>> resolve(const Endpoint& endpoint);

struct TcpConnection {
  UniqueFd fd;
  std::string address;
  std::chrono::microseconds took{0};
};

/// Tries every address in turn.
Result<TcpConnection> connect_tcp(const Endpoint& endpoint, std::chrono::milliseconds timeout);

struct TlsReport {
  std::string protocol;
  std::string cipher;
  std::string subject;
  std::string issuer;
  std::vector<std::string> names;  ///< DNS names and addresses that the certificate is made out for
  std::string not_after;           ///< RFC 3339
  std::int64_t days_left = 0;
  std::string sha256;   ///< fingerprint, lower-case hexadecimal
  std::string problem;  ///< why the certificate is not trusted; empty when it is
  bool is_wrong_name = false;
  bool is_expired = false;
};

/// Makes a TLS handshake and looks at the certificate, trusted or not. Nothing is sent over the connection. The
/// program must ignore SIGPIPE. The program
/// must ignore SIGPIPE.
Result<TlsReport> inspect_tls(const TcpConnection& connection, const Endpoint& endpoint,
                              const std::string& ca_certificate_path, std::chrono::milliseconds timeout);

}  // namespace hive::cli
