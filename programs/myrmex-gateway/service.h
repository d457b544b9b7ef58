#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "base/result.h"
#include "config/gateway_config.h"

namespace hive::net {
class ServiceManager;
}

namespace hive::gateway {

/// The running gateway: every room wired together. Made and driven from the main thread.
class Service {
 public:
  /// Opens the log, the listeners and everything between them. On failure nothing is left running.
  static Result<std::unique_ptr<Service>> start(config::GatewayConfig config);
  ~Service();
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  /// Reads the configuration again and puts it in force all or nothing. Settings that need a restart are named in the
  /// log.
  Result<void> reload();

  /// Serves MCP on two descriptors as well, to the program that started this one. They stay open until stop(). `ended`
  /// is called at most once, on a worker, when that program has closed its side; it must not block. Waits up to 5 s for
  /// the servers behind the gateway, so that the first list has their tools.
  void serve_stdio(int in_fd, int out_fd, std::function<void()> ended);

  /// Tells the service manager that the listeners are open, and from now on that every event loop turns and how many
  /// agents are online. `manager` must live as long as this.
  void report_to(const net::ServiceManager& manager);

  /// One line for `systemctl status`. Thread-safe.
  [[nodiscard]] std::string status() const;

  /// Takes no new calls, waits at most `patience` for running ones, withdraws the rest, gives them `last_words` to end
  /// (a tunnel answers a cancellation, or gives up on it, within 5 s), records the end and closes.
  void stop(std::chrono::milliseconds patience, std::chrono::milliseconds last_words = std::chrono::seconds(8));

 private:
  struct State;
  explicit Service(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace hive::gateway
