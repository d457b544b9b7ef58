#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "base/unique_fd.h"

namespace hive::net {

/// What systemd, or whoever started this program as a service, wants to hear: readiness, a line of status, signs of
/// life. The protocol of sd_notify(3), without its library, which would bring compressors and cryptography with it.
/// Where nobody listens, nothing happens. Thread-safe once it is made.
class ServiceManager {
 public:
  /// Reads NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID and takes them out of the environment, so that children do not
  /// speak for us. Call it before other threads run.
  static ServiceManager of_this_process();

  [[nodiscard]] bool listens() const { return socket_.is_open(); }
  /// A sign of life must come more often than this; zero: none is expected.
  [[nodiscard]] std::chrono::microseconds watchdog_limit() const { return watchdog_limit_; }

  /// These wait up to a few seconds for a manager that is busy: without them it would take us for dead.
  void ready(std::string_view status) const;
  void reloading() const;  ///< ready() must follow
  void stopping() const;
  void feed_watchdog() const;
  /// One line for people, shown by `systemctl status`. Line breaks become blanks. Does not wait; false: the manager is
  /// busy and has not heard it.
  bool status(std::string_view text) const;

 private:
  bool send(std::string message, std::chrono::milliseconds wait) const;

  UniqueFd socket_;  // connected to the manager
  std::chrono::microseconds watchdog_limit_{0};
};

}  // namespace hive::net
