#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/result.h"
#include "crypto/ssh_key.h"
#include "net/runtime/runtime.h"
#include "net/ssh/line_channel.h"

namespace hive::net::ssh {

struct ClientOptions {
  std::string host;
  std::uint16_t port = 2222;
  std::string user;
  std::string private_key_path;
  /// The text of an OpenSSH key file, instead of private_key_path; empty: read the file, at every try.
  std::string private_key = {};
  std::string subsystem = "mcp";
  /// Decides about the key that the server proved to have. An error refuses the connection with its message.
  std::function<Result<void>(const crypto::PublicKey& host_key)> verify_host_key;
  std::chrono::milliseconds connect_timeout = std::chrono::seconds(15);    ///< TCP
  std::chrono::milliseconds handshake_timeout = std::chrono::seconds(20);  ///< from TCP to an open channel
  size_t max_line_bytes = size_t{4} << 20;
  size_t max_queued_bytes = size_t{16} << 20;
};

/// Dials, authenticates and opens the subsystem without blocking the worker. Call it on the worker; `done` runs there,
/// once, never from within the call. Destroying the returned handle before that abandons the attempt; `done` is then
/// not called. Every error names the target and what went wrong: not_found for a host without address, timed_out,
/// permission_denied for a host key, a key or a subsystem that was refused, unavailable for the rest.
class ConnectAttempt {
 public:
  virtual ~ConnectAttempt() = default;
};
std::unique_ptr<ConnectAttempt> connect(Runtime& runtime, Worker& worker, ClientOptions options,
                                        std::move_only_function<void(Result<std::shared_ptr<LineChannel>>)> done);

}  // namespace hive::net::ssh
