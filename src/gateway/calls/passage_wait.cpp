#include "base/strings.h"
#include "gateway/calls/passage.h"
#include "gateway/calls/results.h"

/// A call whose agent is due back waits for it (DESIGN section 2). The gates have spoken by then, and speak again
/// before the call goes on, about what its credential gives by then; nothing is sent, and no intent recorded, while it
/// waits.
namespace hive::calls {

using protocol::Outcome;

bool Passage::waits_for_agent() const {
  if (call_.wait_for_agent.count() == 0 || call_.target != TargetKind::agent) return false;
  fleet::AgentPointer agent = host_.fleet().find(call_.agent);
  // Who has no key any more does not come back, and who is unknown may never have been.
  return agent != nullptr && !agent->online && agent->keyless_since == WallTime();
}

void Passage::wait_for_agent() {
  CallerLimit& waiting = host_.waiting_callers();
  if (!waiting.enter(call_.principal.name)) {
    return end(refusal("too_many_waiting", fmt::format("{} calls of {} wait for agents already; wait for one to end",
                                                       waiting.max_per_caller(), call_.principal.name)));
  }
  std::uint64_t wait =
      host_.fleet().wait_online(call_.agent, worker_, call_.wait_for_agent,
                                [self = shared_from_this()](fleet::WaitEnd end) { self->on_wait_ended(end); });
  bool is_withdrawn = false;
  {
    std::lock_guard lock(mutex_);
    wait_ = wait;
    is_withdrawn = !cancel_reason_.empty();
  }
  // It was withdrawn while it began to wait.
  if (is_withdrawn && wait != 0) host_.fleet().stop_waiting(wait);
}

void Passage::on_wait_ended(fleet::WaitEnd end_of_wait) {
  host_.waiting_callers().leave(call_.principal.name);
  {
    std::lock_guard lock(mutex_);
    wait_ = 0;
  }
  if (is_withdrawn()) {
    return end(refusal("cancelled", "the call was withdrawn while it waited for its agent", Outcome::cancelled));
  }
  if (host_.is_draining()) return end(refusal("draining", "the gateway is stopping and takes no new calls"));
  auto principal = host_.refresh(call_.principal);
  if (!principal) return end(std::move(principal).error());
  call_.principal = *std::move(principal);
  fleet::AgentPointer agent = host_.fleet().find(call_.agent);
  if (agent == nullptr) {
    return end(refusal("agent_unknown", fmt::format("agent {} was forgotten while the call waited", call_.agent)));
  }
  switch (end_of_wait) {
    case fleet::WaitEnd::online:
      break;
    case fleet::WaitEnd::full:
      return end(refusal("too_many_waiting", fmt::format("{}, and too many calls wait for agents already; try again",
                                                         fleet::offline_text(*agent))));
    case fleet::WaitEnd::timed_out:
    case fleet::WaitEnd::ended:
      return end(refusal("agent_offline", fmt::format("{}; the call waited {:.3g} s", fleet::offline_text(*agent),
                                                      std::chrono::duration<double>(call_.wait_for_agent).count())));
  }
  policy_ = host_.current_policy();
  tier_ = tier_of(call_, *policy_);
  if (pass_gates(*policy_, false)) go_on();
}

}  // namespace hive::calls
