#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "config/proxy.h"
#include "crypto/ssh_key.h"
#include "net/runtime/runtime.h"
#include "net/ssh/line_channel.h"

namespace hive::net::ssh {

/// How far a connection has come. Not every one of them happens: a proxy may be missing.
enum class ConnectStep {
  looked_up,       ///< detail: the addresses, of the proxy if there is one
  at_proxy,        ///< detail: the proxy's address
  connected,       ///< detail: the address of the server, or of the proxy that leads to it
  keys_exchanged,  ///< detail: the server's software; whether its key is the right one is asked next
  authenticated,   ///< detail: the fingerprint of our key
};

struct ClientOptions {
  std::string host;
  std::uint16_t port = 2222;
  std::string user;
  std::string private_key_path;
  /// The text of an OpenSSH key file, instead of private_key_path; empty: read the file, at every try.
  std::string private_key = {};
  std::string subsystem = "mcp";
  std::optional<config::ProxyAddress> proxy = {};
  /// The largest TCP segment that either side is to send, in bytes, TCP options included; 0: what the path is said to
  /// take.
  int max_segment_bytes = 0;
  /// Decides about the key that the server proved to have. An error refuses the connection with its message.
  std::function<Result<void>(const crypto::PublicKey& host_key)> verify_host_key;
  /// Told of every step, on the worker; may be empty.
  std::function<void(ConnectStep step, const std::string& detail)> on_step = {};
  std::chrono::milliseconds connect_timeout = std::chrono::seconds(15);    ///< TCP, and then for a proxy's answers
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
