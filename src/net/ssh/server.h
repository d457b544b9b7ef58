#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "crypto/ssh_key.h"
#include "net/runtime/runtime.h"
#include "net/ssh/line_channel.h"

namespace hive::net::ssh {

struct ServerOptions {
  std::string listen_address;  ///< "HOST:PORT", ":PORT", "[::1]:0"
  std::string host_key_path;   ///< OpenSSH private key file, Ed25519
  std::string subsystem = "mcp";
  std::string probe_subsystem = {};  ///< gives channels of kind probe; empty: there is none

  /// Decides about a key. Asked when the peer wants to know whether a key would do, and again when it has proved that
  /// it owns it; only the second counts, and both must be answered alike. Called on the handshake thread; must be
  /// thread-safe and quick. An error refuses; its message goes to the log, never to the peer.
  std::function<Result<void>(const std::string& user, const crypto::PublicKey& key, const std::string& address)>
      authenticate;
  /// Takes a finished channel, on the worker that owns it. May still be called shortly after the server is gone, so
  /// what it refers to must live as long as the runtime runs.
  std::function<void(std::shared_ptr<LineChannel>)> accept;
  /// Told of every connection that ended before a channel was open: address, user (may be empty), reason. Any thread.
  std::function<void(const std::string& address, const std::string& user, const std::string& reason)> refused;

  std::chrono::milliseconds handshake_timeout = std::chrono::seconds(20);  ///< from accept to an open channel
  int max_authentication_tries = 3;
  /// Connections in their handshake at once; the others wait for their turn, the sources one after another.
  size_t max_handshakes = 256;
  /// Of these, for one source (an address, or the /64 of an IPv6 address), so that no source holds up all others.
  size_t max_handshakes_per_source = 128;
  /// Connections that wait for their handshake; also at most a quarter of the process' descriptors. Beyond, the source
  /// with the most loses its newest.
  size_t max_waiting = 8192;
  /// While others wait, a connection gives way that has sent nothing yet for the first of these times, or has stood
  /// still in its handshake for the second.
  std::chrono::milliseconds silent_limit = std::chrono::seconds(3);
  std::chrono::milliseconds idle_limit = std::chrono::seconds(10);
  size_t max_line_bytes = size_t{4} << 20;
  size_t max_queued_bytes = size_t{8} << 20;
};

/// The gateway's SSH listener: public keys only, one channel a connection, nothing but the subsystem or a channel of
/// the same type; every other request is refused. Handshakes run on their own thread; a finished session moves to a
/// worker.
class Server {
 public:
  static Result<std::unique_ptr<Server>> listen(Runtime& runtime, ServerOptions options);
  virtual ~Server() = default;
  /// The port that was bound; differs from the option when that was 0.
  [[nodiscard]] virtual std::uint16_t port() const = 0;
  /// No new connections; those in their handshake are ended. Open channels stay. Thread-safe.
  virtual void stop_accepting() = 0;
};

}  // namespace hive::net::ssh
