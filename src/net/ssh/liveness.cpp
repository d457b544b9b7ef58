#include "net/ssh/liveness.h"

#include <algorithm>

#include "base/strings.h"

namespace hive::net::ssh {

namespace {

/// While a probe's answer may stand behind other bytes, at least this much must flow. Slower than any modem: what is
/// below is a peer that pretends.
constexpr std::uint64_t min_bytes_per_second = 1024;
/// More than this cannot stand before an answer: it is what both queues, the windows and a burst of answers can hold.
constexpr std::uint64_t max_bytes_before_answer = std::uint64_t{256} << 20;
/// A check that comes later than this, and than half an interval, says that we did not run ourselves.
constexpr std::chrono::milliseconds min_own_pause{500};
/// No check comes sooner than this after another one.
constexpr std::chrono::milliseconds min_pause{1};

std::int64_t in_seconds(SteadyTime::duration duration) {
  return std::chrono::duration_cast<std::chrono::seconds>(duration).count();
}

std::uint64_t moved(const Traffic& traffic) {
  return traffic.received + traffic.acked;
}

}  // namespace

Liveness::Liveness(SteadyTime now, std::chrono::milliseconds interval, int patience)
    : interval_(interval),
      patience_(patience),
      evidence_(now),
      looked_(now),
      due_(now + interval / 2),
      next_probe_(now + interval),
      queue_(begin_wait(now, {})) {}

void Liveness::probed(SteadyTime now, const Traffic& traffic) {
  probe_ = begin_wait(now, traffic);
  next_probe_ = now + interval_;
}

Liveness::Verdict Liveness::check(SteadyTime now, const Traffic& traffic) {
  Verdict verdict;
  if (now - due_ > std::max<SteadyTime::duration>(interval_ / 2, min_own_pause)) {
    restart(now, traffic);
    verdict.probe = !probe_;
  } else {
    note_progress(now, traffic);
    verdict.dead = judge(now, traffic);
    verdict.probe = verdict.dead.empty() && !probe_ && now >= next_probe_;
  }
  if (verdict.probe) next_probe_ = now + interval_;
  seen_ = traffic;
  looked_ = now;
  SteadyTime next = std::min(now + interval_ / 2, evidence_ + limit());
  if (!probe_) next = std::min(next, next_probe_);
  verdict.next = std::max<SteadyTime::duration>(next - now, min_pause);
  due_ = now + verdict.next;
  return verdict;
}

// Growth since the last check happened at some time after it. Taken as early as it can have been, so that a peer that
// dies is never noticed late; one that lives moves again before that matters.
void Liveness::note_progress(SteadyTime now, const Traffic& traffic) {
  const bool came = traffic.received > seen_.received;
  const bool went = traffic.is_sending && traffic.acked > seen_.acked;
  if (came || went) evidence_ = std::max(evidence_, looked_);
  if (traffic.queued == 0) {
    queue_ = begin_wait(now, traffic);
  } else if (traffic.taken > seen_.taken && looked_ > queue_.since) {
    queue_ = begin_wait(looked_, seen_);
  }
}

void Liveness::restart(SteadyTime now, const Traffic& traffic) {
  evidence_ = now;
  queue_ = begin_wait(now, traffic);
  if (probe_) probe_ = queue_;
}

Liveness::Wait Liveness::begin_wait(SteadyTime now, const Traffic& traffic) {
  const std::uint64_t total = moved(traffic);
  return Wait{.since = now, .moved = total, .flowed_at = now, .measured_at = now, .measured = total};
}

bool Liveness::is_over(Wait& wait, SteadyTime now, const Traffic& traffic) const {
  const std::uint64_t total = moved(traffic);
  if (const auto took = now - wait.measured_at; took >= interval_) {
    const auto milliseconds = std::chrono::duration_cast<std::chrono::milliseconds>(took).count();
    const std::uint64_t needed = static_cast<std::uint64_t>(milliseconds) * min_bytes_per_second / 1000;
    if (total > wait.measured + needed) wait.flowed_at = now;
    wait.measured_at = now;
    wait.measured = total;
  }
  if (now - wait.since < limit()) return false;
  return now - wait.flowed_at >= limit() || total > wait.moved + max_bytes_before_answer;
}

std::string Liveness::judge(SteadyTime now, const Traffic& traffic) {
  if (now - evidence_ >= limit()) return fmt::format("nothing heard for {} s", in_seconds(now - evidence_));
  if (probe_ && is_over(*probe_, now, traffic)) {
    return fmt::format("a ping was not answered for {} s", in_seconds(now - probe_->since));
  }
  if (is_over(queue_, now, traffic)) {
    return fmt::format("nothing that was sent has been read for {} s", in_seconds(now - queue_.since));
  }
  return {};
}

}  // namespace hive::net::ssh
