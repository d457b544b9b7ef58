#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "net/http/message.h"

namespace hive::net::http {

struct ClientRequest {
  std::string method = "GET";
  std::string url;
  Headers headers;
  std::string body;
  std::chrono::milliseconds connect_timeout = std::chrono::seconds(10);
  std::chrono::milliseconds timeout = std::chrono::seconds(40);
  std::size_t max_response_bytes = std::size_t{64} << 20;
  std::string ca_certificate_path;  ///< empty: the system's store
  bool verify_tls = true;
  /// Set to get the body as it arrives (server-sent events) instead of in the response; return false to stop.
  std::function<bool(std::string_view)> on_data;
};

struct ClientResponse {
  unsigned status = 0;
  Headers headers;  ///< names in lower case
  std::string body;
};

/// Sends one request and waits for the answer (libcurl). Blocks: for command-line programs and the blocking pool.
/// Errors name the host and say what failed: name, connection, TLS, time, size.
Result<ClientResponse> perform(const ClientRequest& request);

}  // namespace hive::net::http
