#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <sys/socket.h>

#include "base/clock.h"
#include "base/result.h"
#include "base/unique_fd.h"
#include "config/proxy.h"
#include "net/proxy/dialogue.h"
#include "net/runtime/runtime.h"
#include "net/ssh/readiness.h"
#include "net/ssh/sockets.h"

namespace hive::net::ssh {

struct Endpoint {
  sockaddr_storage address{};
  socklen_t size = 0;
};

/// Where to connect to, once names are looked up.
struct Route {
  std::vector<Endpoint> endpoints;            ///< of the target, or of the proxy; at least one
  std::optional<config::ProxyAddress> proxy;  ///< who is asked for the target
  std::string host;                           ///< of the target, as the proxy is asked for it
  std::uint16_t port = 0;
  int max_segment_bytes = 0;  ///< see ClientOptions
};

/// Looks up what must be looked up here. Blocks. not_found for a name without address.
Result<Route> find_route(const std::string& host, std::uint16_t port, const std::optional<config::ProxyAddress>& proxy);

/// The addresses of a route, in the order in which they are tried.
std::vector<std::string> addresses_of(const Route& route);

/// A connection on which the target speaks next.
struct Dialed {
  UniqueFd fd;            ///< non-blocking
  SocketAddress address;  ///< of the peer: the target, or the proxy
};

/// Connects to the first endpoint that answers and, where there is a proxy, has it open the tunnel. Not a byte that
/// belongs to the target is taken from the connection. On one worker.
class Dialer final : public Readiness::Listener, public std::enable_shared_from_this<Dialer> {
 public:
  using Done = std::move_only_function<void(Result<Dialed>)>;
  /// Told when the connection stands and the proxy is to be asked next.
  using AtProxy = std::function<void(const SocketAddress& proxy)>;

  /// `timeout` holds for all endpoints together, and then for the proxy's answers. `done` is called once, also from
  /// within start(). An error says what went wrong with which address, or which proxy.
  Dialer(Worker& worker, Route route, std::chrono::milliseconds timeout, AtProxy at_proxy, Done done);

  void start();
  /// Closes everything; `done` is not called any more.
  void abandon();

  void on_ready() override;

 private:
  void next_endpoint();
  void note_error(int error);
  void connected();
  void ask_proxy();
  /// Reads and answers as far as that is possible now.
  Result<void> talk();
  Result<void> send_output();
  Result<bool> read_answer();
  void succeed();
  void finish(Result<Dialed> result);

  Worker& worker_;
  Route route_;
  const std::chrono::milliseconds timeout_;
  AtProxy at_proxy_;
  Done done_;
  Timer timer_;
  SteadyTime deadline_;
  size_t endpoint_ = 0;
  std::string errors_;
  bool timed_out_ = false;
  SocketAddress address_;
  UniqueFd socket_;
  std::unique_ptr<Readiness> readiness_;
  std::unique_ptr<proxy::Dialogue> dialogue_;  // null: still connecting, or no proxy
  std::string output_;                         // for the proxy, not sent yet
};

}  // namespace hive::net::ssh
