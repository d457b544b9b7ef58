#pragma once

#include <atomic>
#include <cstdint>

#include "net/runtime/runtime.h"

namespace hive::gateway {

/// Gives the memory of tunnels that have ended back to the system. The C library keeps free pages between pages in use,
/// and after an outage of a large fleet that is most of what a gateway holds.
class MemoryReturn {
 public:
  /// `runtime` must outlive it, and have stopped when it goes.
  explicit MemoryReturn(net::Runtime& runtime) : runtime_(runtime) {}

  /// A tunnel has ended. Once many have, memory is given back a little later, when the last of them are gone as well:
  /// on the blocking pool, and so seldom that calls do not notice. Thread-safe.
  void tunnel_ended();

 private:
  net::Runtime& runtime_;
  std::atomic<std::uint32_t> ended_ = 0;  // since memory was last given back
  std::atomic<bool> waits_ = false;
  net::Timer timer_;  // on the first worker
};

}  // namespace hive::gateway
