#include <algorithm>

#include "base/log.h"
#include "base/strings.h"
#include "gateway/calls/approval_desk.h"
#include "gateway/calls/approval_records.h"
#include "gateway/calls/approval_rows.h"
#include "gateway/calls/results.h"

namespace hive::calls {

using protocol::Outcome;

namespace {

constexpr std::chrono::minutes forget_period(10);

}  // namespace

void ApprovalDesk::run(const Snapshot& approved) {
  auto principal = given_.refresh(approved->requester);
  if (!principal) {
    return end(approved, ApprovalStatus::approved,
               refusal("credential_revoked",
                       "the credential by which this was asked has expired or is not accepted any more; ask again"),
               true);
  }
  {
    std::lock_guard lock(mutex_);
    auto found = entries_.find(approved->id);
    if (found != entries_.end()) found->second.redeemable = true;
  }
  Call call;
  call.principal = *std::move(principal);
  call.surface = Surface::approval;
  call.request_id = approved->request_id;
  call.agent = approved->subject.agent;
  call.tool = approved->subject.tool;
  call.target = approved->target;
  call.method = approved->method;
  (call.method.empty() ? call.arguments : call.params) = approved->subject.arguments;
  call.on_behalf_of = approved->subject.on_behalf_of;
  call.after_untrusted_text = approved->after_untrusted_text;
  call.timeout = approved->timeout;
  call.approval_id = approved->id;
  given_.funnel.run(given_.runtime.next_worker(), std::move(call),
                    [self = shared_from_this(), approved](CallResult result) {
                      self->end(approved, ApprovalStatus::approved, std::move(result), false);
                    });
}

void ApprovalDesk::end(const Snapshot& approval, ApprovalStatus status, CallResult result, bool write_outcome) {
  given_.database.post([self = shared_from_this(), approval, status, result = std::move(result),
                        write_outcome](store::Connection& connection) {
    self->end_now(connection, approval, status, result, write_outcome);
  });
}

void ApprovalDesk::end_now(store::Connection& connection, const Snapshot& approval, ApprovalStatus status,
                           const CallResult& result, bool write_outcome) {
  Approval after = ended(*approval, status, result, given_.clock.wall_now());
  std::optional<CallResult> too_large;
  if (result.body.size() > options_.max_result_bytes) {
    too_large = refusal("result_not_kept",
                        fmt::format("the call has ended ({}), but its result of {} bytes is too large to be kept",
                                    protocol::to_string(result.outcome), result.body.size()),
                        result.outcome);
  }
  if (Result<void> written = rows::update(connection, after, too_large ? &*too_large : &result); !written) {
    log::error("the end of an approved call is not kept; the audit log has it",
               {{"approval", after.id}, {"reason", written.error().message}});
  }
  put(after);
  if (write_outcome) {
    audit::Record outcome = record_of(after, "tool_call");
    outcome.kind = audit::RecordKind::outcome;
    outcome.outcome = result.outcome;
    outcome.reason = result.reason;
    outcome.detail = message_of(result.body);
    record(std::move(outcome));
  }
  std::vector<std::shared_ptr<Waiter>> waiters;
  {
    std::lock_guard lock(mutex_);
    auto found = entries_.find(after.id);
    if (found != entries_.end()) waiters = std::exchange(found->second.waiters, {});
  }
  for (const auto& waiter : waiters)
    answer_now(waiter, std::optional(too_large ? *too_large : result));
}

void ApprovalDesk::expire_now(store::Connection& connection, const Snapshot& approval) {
  end_now(connection, approval, ApprovalStatus::expired,
          refusal("approval_expired",
                  fmt::format("nobody approved this call until {}", format_rfc3339(approval->expires_at)),
                  Outcome::expired),
          true);
}

void ApprovalDesk::sweep() {
  for (audit::Record& sum : refusals_.take_due())
    record(std::move(sum));
  SteadyTime now = given_.clock.steady_now();
  std::vector<std::string> due;
  bool forget = false;
  {
    std::lock_guard lock(mutex_);
    for (const auto& [id, entry] : entries_) {
      if (entry.on_disk && entry.approval->status == ApprovalStatus::pending && entry.deadline <= now)
        due.push_back(id);
    }
    if (now - last_forgetting_ >= forget_period || keeps_too_much()) {
      last_forgetting_ = now;
      forget = true;
    }
  }
  if (due.empty() && !forget) return;
  given_.database.post([self = shared_from_this(), due = std::move(due), forget](store::Connection& connection) {
    for (const std::string& id : due) {
      Snapshot approval = self->snapshot(id);
      // Somebody may have decided meanwhile.
      if (approval && approval->status == ApprovalStatus::pending) self->expire_now(connection, approval);
    }
    if (forget) self->forget_old(connection);
  });
}

// Some more than what is kept, so that a busy desk does not look through everything for each request that ends.
bool ApprovalDesk::keeps_too_much() const {
  return ended_ > options_.max_ended + options_.max_ended / 8 ||
         ended_arguments_bytes_ > options_.max_arguments_bytes + options_.max_arguments_bytes / 8;
}

void ApprovalDesk::forget_old(store::Connection& connection) {
  std::vector<Snapshot> done;
  {
    std::lock_guard lock(mutex_);
    for (const auto& [id, entry] : entries_) {
      if (entry.approval->ended_at) done.push_back(entry.approval);
    }
  }
  std::ranges::sort(done, std::greater<>(), [](const Snapshot& approval) { return *approval->ended_at; });
  WallTime oldest = given_.clock.wall_now() - options_.keep;
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < done.size(); ++i) {
    bytes += done[i]->subject.arguments.size();
    if (i < options_.max_ended && bytes <= options_.max_arguments_bytes && *done[i]->ended_at >= oldest) continue;
    if (Result<void> removed = rows::remove(connection, done[i]->id); !removed) {
      log::error("an old approval cannot be removed", {{"approval", done[i]->id}, {"reason", removed.error().message}});
      return;
    }
    std::lock_guard lock(mutex_);
    --ended_;
    ended_arguments_bytes_ -= done[i]->subject.arguments.size();
    entries_.erase(done[i]->id);
  }
}

void ApprovalDesk::result(net::Worker& worker, const policy::Principal& viewer, std::string id,
                          std::chrono::milliseconds patience,
                          std::move_only_function<void(Result<std::optional<CallResult>>)> done) {
  auto waiter = std::make_shared<Waiter>(worker, std::move(done));
  Snapshot approval = find(viewer, id);
  if (approval == nullptr) {
    return answer_now(waiter, fail(ErrorCode::not_found, "there is no approval {}", quote(id)));
  }
  bool is_requester = viewer.identity() == approval->subject.identity;
  if (!is_requester && viewer.role != policy::Role::admin) {
    return answer_now(waiter, fail(ErrorCode::permission_denied, "the result is for the requester and for admins"));
  }
  bool has_ended = false;
  bool waits = false;
  {
    std::lock_guard lock(mutex_);
    auto found = entries_.find(id);
    has_ended = found == entries_.end() || found->second.approval->outcome.has_value();
    waits = !has_ended && !closing_ && patience.count() > 0 && found->second.waiters.size() < options_.max_waiters;
    if (waits) found->second.waiters.push_back(waiter);
  }
  if (has_ended) return answer(waiter, std::move(id));
  if (!waits) return answer_now(waiter, std::optional<CallResult>());
  worker.dispatch([self = shared_from_this(), waiter, id = std::move(id), patience] {
    waiter->timer = waiter->worker.schedule(patience, [self, weak = std::weak_ptr(waiter), id] {
      auto alive = weak.lock();
      if (alive == nullptr) return;
      {
        std::lock_guard lock(self->mutex_);
        auto found = self->entries_.find(id);
        if (found != self->entries_.end()) std::erase(found->second.waiters, alive);
      }
      answer_now(alive, std::optional<CallResult>());
    });
  });
}

void ApprovalDesk::answer(const std::shared_ptr<Waiter>& waiter, std::string id) {
  given_.database.post([waiter, id = std::move(id)](store::Connection& connection) {
    Result<std::optional<CallResult>> result = rows::load_result(connection, id);
    if (result && !*result) {
      result = fail(ErrorCode::unavailable, "the result of {} is not kept any more; the audit log has its outcome", id);
    }
    answer_now(waiter, std::move(result));
  });
}

void ApprovalDesk::answer_now(const std::shared_ptr<Waiter>& waiter, Result<std::optional<CallResult>> result) {
  if (waiter->answered.exchange(true)) return;
  waiter->worker.post([waiter, result = std::move(result)]() mutable {
    waiter->timer.cancel();
    waiter->done(std::move(result));
    waiter->done = nullptr;
  });
}

void ApprovalDesk::close() {
  std::vector<std::shared_ptr<Waiter>> waiters;
  {
    std::lock_guard lock(mutex_);
    closing_ = true;
    for (auto& [id, entry] : entries_)
      std::ranges::move(std::exchange(entry.waiters, {}), std::back_inserter(waiters));
  }
  for (const auto& waiter : waiters)
    answer_now(waiter, std::optional<CallResult>());
}

}  // namespace hive::calls
