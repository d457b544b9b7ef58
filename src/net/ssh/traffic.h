#pragma once

#include <cstddef>
#include <cstdint>

namespace hive::net::ssh {

/// How far a connection has come: what tells a peer that is slow from one that is gone. Totals only grow.
struct Traffic {
  std::uint64_t received = 0;  ///< bytes that came from the peer, whole lines or not
  std::uint64_t acked = 0;     ///< bytes that the peer's machine has acknowledged, whether or not the peer read them
  std::uint64_t taken = 0;     ///< bytes of lines that have left our queue: the peer's window had room for them
  std::size_t queued = 0;      ///< bytes of lines that wait in our queue
  bool is_sending = false;     ///< something waits to be sent or acknowledged
};

}  // namespace hive::net::ssh
