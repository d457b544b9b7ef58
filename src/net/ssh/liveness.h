#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "base/clock.h"
#include "net/ssh/traffic.h"

namespace hive::net::ssh {

/// Decides whether the peer of a connection still lives: when to probe it, and when to give it up. Pure; the owner asks
/// check() at the times that it names. Both ends of a tunnel use it.
///
/// - A peer is given up when nothing has come from it for `patience` intervals. Bytes of a line that is on its way
///   count, and so does what its machine acknowledges while we have more to send: a slow path is not a dead one.
/// - A peer that reads nothing, or answers no probe, is given up as well, although it sends: a probe must be answered
///   within `patience` intervals, or later only while bytes flow that the answer may have to wait for.
/// - After a pause of our own (SIGSTOP, an overloaded machine) nobody is judged by the time that we did not look: every
///   peer is probed and has its whole time again.
class Liveness {
 public:
  Liveness(SteadyTime now, std::chrono::milliseconds interval, int patience = 3);

  /// A line came.
  void heard(SteadyTime now) { evidence_ = now; }
  /// A probe has been queued that the peer must answer; until answered() no other one is asked for.
  void probed(SteadyTime now, const Traffic& traffic);
  void answered() { probe_.reset(); }
  /// From now on the peer has this many intervals.
  void set_patience(int patience) { patience_ = patience; }

  struct Verdict {
    bool probe = false;           ///< send a probe now
    std::string dead;             ///< not empty: the peer is given up, for this reason
    SteadyTime::duration next{};  ///< when to ask again
  };
  [[nodiscard]] Verdict check(SteadyTime now, const Traffic& traffic);

 private:
  /// Something that waits for the peer, and the flow in both directions that may explain why.
  struct Wait {
    SteadyTime since;
    std::uint64_t moved = 0;  // bytes that had moved by then
    SteadyTime flowed_at;     // until then enough flowed
    SteadyTime measured_at;   // the flow is measured once an interval
    std::uint64_t measured = 0;
  };

  [[nodiscard]] SteadyTime::duration limit() const { return interval_ * patience_; }
  void note_progress(SteadyTime now, const Traffic& traffic);
  void restart(SteadyTime now, const Traffic& traffic);
  [[nodiscard]] std::string judge(SteadyTime now, const Traffic& traffic);
  [[nodiscard]] static Wait begin_wait(SteadyTime now, const Traffic& traffic);
  /// Whether a wait has taken all its time, and nothing flows any more that would explain it.
  [[nodiscard]] bool is_over(Wait& wait, SteadyTime now, const Traffic& traffic) const;

  SteadyTime::duration interval_;
  int patience_;
  SteadyTime evidence_;  // the peer lived at this time
  SteadyTime looked_;    // the last check
  SteadyTime due_;       // when the next check should come
  SteadyTime next_probe_;
  Traffic seen_;  // at the last check
  Wait queue_;    // since our queue was empty, or moved
  std::optional<Wait> probe_;
};

}  // namespace hive::net::ssh
