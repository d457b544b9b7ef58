#pragma once

#include <cstdint>

#include "base/clock.h"
#include "net/ssh/traffic.h"

namespace hive::agent {

/// For how long nothing of what a connection has to send has arrived. On a connection that heard its peer meanwhile
/// that is the sign of a path that swallows large packets and tells nobody (RFC 2923 section 2.1).
class StuckOutput {
 public:
  explicit StuckOutput(SteadyTime now) : moved_(now) {}

  void look(SteadyTime now, const net::ssh::Traffic& traffic) {
    if (!traffic.is_sending || traffic.acked != acked_) moved_ = now;
    acked_ = traffic.acked;
  }
  [[nodiscard]] SteadyTime::duration lasts(SteadyTime now) const { return now - moved_; }

 private:
  SteadyTime moved_;  // something arrived, or there was nothing to send
  std::uint64_t acked_ = 0;
};

}  // namespace hive::agent
