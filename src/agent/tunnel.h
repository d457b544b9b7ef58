#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "config/agent_config.h"
#include "net/runtime/runtime.h"
#include "net/ssh/client.h"

namespace hive::agent {

enum class TunnelState {
  connecting,
  connected,
  waiting,  ///< for the next try
  stopped,
};

struct TunnelStatus {
  TunnelState state = TunnelState::stopped;
  config::GatewayAddress gateway;         ///< of this try, or of the last one
  Error last_error;                       ///< why it is waiting
  std::chrono::milliseconds retry_in{0};  ///< when waiting
};

struct TunnelCallbacks {
  /// A channel is open. Set its handler here or soon after: lines wait until then. The tunnel watches the channel and
  /// redials when it closes; nothing else needs to be done for that.
  std::function<void(std::shared_ptr<net::ssh::LineChannel>)> on_connected;
  /// For logs and status; may be empty.
  std::function<void(const TunnelStatus&)> on_state;
};

/// What tests replace.
struct TunnelTuning {
  using Connect = std::function<std::unique_ptr<net::ssh::ConnectAttempt>(
      net::Runtime&, net::Worker&, net::ssh::ClientOptions,
      std::move_only_function<void(Result<std::shared_ptr<net::ssh::LineChannel>>)>)>;

  std::chrono::milliseconds backoff_base = std::chrono::seconds(1);
  std::chrono::milliseconds backoff_cap = std::chrono::seconds(30);
  std::function<double()> random;  ///< 0 to 1; empty: the kernel's generator
  const Clock* clock = &system_clock();
  Connect connect;  ///< empty: net::ssh::connect
};

/// Keeps one connection to the fleet of gateways: the agent's only way to the world. Everything happens on `worker`.
///
/// After each end, clean or not, the next address is tried after a delay (see Backoff). Only useful_exchange() takes
/// the delay back to its start: a gateway that accepts and drops us at once must not be hammered.
///
/// A gateway from which nothing has come for three keepalive periods is left, also one that is merely stopped: it is
/// probed once a period by a request of SSH's own, which every gateway answers, also those of the Go product, that
/// never ping.
class Tunnel {
 public:
  /// Checks what can be checked before the first try: the pinned host key.
  static Result<std::shared_ptr<Tunnel>> create(net::Runtime& runtime, net::Worker& worker, config::AgentConfig config,
                                                TunnelCallbacks callbacks, TunnelTuning tuning = {});
  virtual ~Tunnel() = default;

  /// Begins to connect. On the worker.
  virtual void start() = 0;
  /// Takes up the private key that is in the file now: opens a second connection with it and makes that the agent's
  /// own, leaving the first one to the gateway, which closes it when its calls have ended. When the new connection
  /// fails, the first one stays and the log says why. Without a connection the next try comes at once. On the worker.
  virtual void renew() = 0;
  /// Replaces the key text of a configuration that names no file; renew() and later tries use it. On the worker.
  virtual void use_private_key(config::Secret key) = 0;
  /// Closes all connections and does not redial. On the worker. A handler's on_closed still follows.
  virtual void stop() = 0;
  /// A request of the gateway was answered: this connection has proved its worth. On the worker.
  virtual void useful_exchange() = 0;
};

}  // namespace hive::agent
