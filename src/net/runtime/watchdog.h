#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "net/runtime/runtime.h"
#include "net/runtime/service_manager.h"

namespace hive::net {

/// Gives the service manager its signs of life, but only while every event loop turns: each worker is asked, and until
/// all have answered the watchdog is not fed, so that a program that hangs is started again. Keeps the status line up
/// to date with the same thread. Does nothing, and has no thread, where no manager listens.
class Watchdog {
 public:
  /// `manager` must outlive this; the workers as well, or stop_asking() is called before they go. `status` says the
  /// line of status; it is called on a thread of the watchdog, may be empty, and must be quick.
  Watchdog(const ServiceManager& manager, std::vector<Worker*> workers, std::function<std::string()> status = {});
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  /// The program is about to end in its own time: from now on the workers are not asked, and may go.
  void stop_asking();

 private:
  struct State;
  std::unique_ptr<State> state_;  // null: nobody listens
};

}  // namespace hive::net
