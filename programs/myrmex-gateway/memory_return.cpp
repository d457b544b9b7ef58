#include "memory_return.h"

#include <chrono>

#include <malloc.h>

namespace hive::gateway {

namespace {

// Some 25 KiB each: less is not worth looking through all that is free.
constexpr std::uint32_t many_tunnels = 500;
constexpr std::chrono::milliseconds pause = std::chrono::seconds(10);

}  // namespace

void MemoryReturn::tunnel_ended() {
  if (++ended_ < many_tunnels || waits_.exchange(true)) return;
  runtime_.worker(0).post([this] {
    timer_ = runtime_.worker(0).schedule(pause, [this] {
      runtime_.run_blocking([this] {
        ended_ = 0;
        waits_ = false;
        ::malloc_trim(0);
      });
    });
  });
}

}  // namespace hive::gateway
