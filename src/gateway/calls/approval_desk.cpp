#include "gateway/calls/approval_desk.h"

#include <algorithm>

#include "base/log.h"
#include "base/strings.h"
#include "crypto/random.h"
#include "gateway/calls/approval_rows.h"
#include "gateway/calls/results.h"

namespace hive::calls {

using protocol::Outcome;

namespace {

constexpr std::chrono::seconds sweep_period(1);
constexpr std::chrono::minutes forget_period(10);
constexpr std::size_t max_comment_bytes = 1000;

audit::Record record_of(const Approval& approval, std::string action) {
  audit::Record record;
  record.kind = audit::RecordKind::event;
  record.call_id = approval.call_id;
  record.request_id = approval.request_id;
  record.principal = approval.subject.principal;
  record.role = policy::to_string(approval.requester.role);
  record.surface = to_string(approval.surface);
  record.action = std::move(action);
  record.agent = approval.subject.agent;
  record.tool = approval.subject.tool;
  record.tier = protocol::to_string(approval.subject.tier);
  record.on_behalf_of = approval.subject.on_behalf_of;
  record.after_untrusted_text = approval.after_untrusted_text;
  return record;
}

audit::Record record_of(const ApprovalDesk::Word& word, const Approval& approval, std::string action) {
  audit::Record record = record_of(approval, std::move(action));
  record.request_id = word.request_id;
  record.principal = word.by.name;
  record.role = policy::to_string(word.by.role);
  record.surface = to_string(word.surface);
  return record;
}

std::string_view name_of(ApprovalAction action) {
  switch (action) {
    case ApprovalAction::approve:
      return "approve";
    case ApprovalAction::reject:
      return "reject";
    case ApprovalAction::withdraw:
      return "withdraw";
  }
  return "approve";
}

std::string_view event_of(ApprovalAction action) {
  switch (action) {
    case ApprovalAction::approve:
      return "approval_granted";
    case ApprovalAction::reject:
      return "approval_rejected";
    case ApprovalAction::withdraw:
      return "approval_withdrawn";
  }
  return "approval_granted";
}

std::unexpected<Error> decided(const Approval& approval) {
  if (approval.status == ApprovalStatus::expired) {
    return fail(ErrorCode::timed_out, "approval {} expired at {}; the call must be asked for again", approval.id,
                format_rfc3339(approval.expires_at));
  }
  return fail(ErrorCode::already_exists, "approval {} is {} already", approval.id, to_string(approval.status));
}

Approval ended(const Approval& approval, ApprovalStatus status, const CallResult& result, WallTime now) {
  Approval after = approval;
  after.status = status;
  after.outcome = result.outcome;
  after.reason = result.reason;
  after.ended_at = now;
  return after;
}

}  // namespace

std::string_view to_string(ApprovalStatus status) {
  switch (status) {
    case ApprovalStatus::pending:
      return "pending";
    case ApprovalStatus::approved:
      return "approved";
    case ApprovalStatus::rejected:
      return "rejected";
    case ApprovalStatus::withdrawn:
      return "withdrawn";
    case ApprovalStatus::expired:
      return "expired";
  }
  return "pending";
}

std::optional<ApprovalStatus> approval_status_from_string(std::string_view name) {
  for (ApprovalStatus status : {ApprovalStatus::pending, ApprovalStatus::approved, ApprovalStatus::rejected,
                                ApprovalStatus::withdrawn, ApprovalStatus::expired}) {
    if (to_string(status) == name) return status;
  }
  return std::nullopt;
}

Result<std::shared_ptr<Approvals>> Approvals::open(Dependencies dependencies, Options options) {
  store::Database& database = dependencies.database;
  auto desk = std::make_shared<ApprovalDesk>(std::move(dependencies), options);
  Result<void> restored;
  database.run([&](store::Connection& connection) { restored = desk->restore(connection); });
  if (!restored) return std::unexpected(with_context(std::move(restored).error(), "the approvals of the last run"));
  desk->start();
  return desk;
}

// Requests.

Result<void> ApprovalDesk::restore(store::Connection& connection) {
  std::vector<Approval> kept = TRY(rows::load(connection));
  WallTime now = given_.clock.wall_now();
  SteadyTime steady = given_.clock.steady_now();
  std::vector<Snapshot> interrupted;
  for (Approval& approval : kept) {
    if (approval.digest != policy::digest_of(approval.subject)) {
      log::warning("an approval does not fit what it was asked for and can no longer be used",
                   {{"approval", approval.id}});
    }
    auto shared = std::make_shared<const Approval>(std::move(approval));
    std::lock_guard lock(mutex_);
    Entry entry;
    entry.approval = shared;
    entry.on_disk = true;
    // A clock that was set back must not make a request live longer than it would have.
    auto left = std::clamp<WallTime::duration>(shared->expires_at - now, WallTime::duration::zero(),
                                               shared->expires_at - shared->created_at);
    entry.deadline = steady + left;
    arguments_bytes_ += shared->subject.arguments.size();
    if (shared->status == ApprovalStatus::pending) pending_digests_[shared->digest] = shared->id;
    if (shared->status == ApprovalStatus::approved && !shared->outcome) interrupted.push_back(shared);
    entries_.emplace(shared->id, std::move(entry));
  }
  for (const Snapshot& approval : interrupted) {
    end_now(connection, approval, ApprovalStatus::approved,
            refusal("gateway_restarted",
                    "the gateway stopped after this was approved; whether it ran can be seen on the agent alone",
                    Outcome::unknown),
            true);
  }
  forget_old(connection);
  return {};
}

void ApprovalDesk::start() {
  net::Worker& worker = given_.runtime.worker(0);
  worker.post([weak = weak_from_this(), &worker] {
    if (auto self = weak.lock()) self->schedule_sweep(worker);
  });
}

void ApprovalDesk::schedule_sweep(net::Worker& worker) {
  sweep_timer_ = worker.schedule(sweep_period, [weak = weak_from_this(), &worker] {
    auto self = weak.lock();
    if (self == nullptr) return;
    self->sweep();
    self->schedule_sweep(worker);
  });
}

Result<void> ApprovalDesk::admit(const Approval& request) const {
  if (closing_) return fail(ErrorCode::unavailable, "the gateway is stopping and takes no requests");
  std::size_t pending = 0;
  std::size_t of_requester = 0;
  for (const auto& [id, entry] : entries_) {
    if (entry.approval->status != ApprovalStatus::pending) continue;
    ++pending;
    if (entry.approval->subject.identity == request.subject.identity) ++of_requester;
  }
  if (pending >= options_.max_pending) {
    return fail(ErrorCode::resource_exhausted, "{} requests wait for an approval already; decide or withdraw some",
                pending);
  }
  if (of_requester >= options_.max_pending_per_principal) {
    return fail(ErrorCode::resource_exhausted, "{} requests of yours wait for an approval already; withdraw some",
                of_requester);
  }
  if (arguments_bytes_ + request.subject.arguments.size() > options_.max_arguments_bytes) {
    return fail(ErrorCode::resource_exhausted,
                "the arguments of all requests are too large together; decide some first");
  }
  return {};
}

void ApprovalDesk::ask(Approval request, Asker done) {
  request.digest = policy::digest_of(request.subject);
  Snapshot asked_before;
  Result<void> admitted;
  Snapshot made;
  {
    std::lock_guard lock(mutex_);
    auto same = pending_digests_.find(request.digest);
    if (same != pending_digests_.end()) {
      Entry& entry = entries_.at(same->second);
      if (!entry.on_disk) {
        entry.askers.push_back(std::move(done));
        return;
      }
      // What runs out in this moment is not worth waiting for.
      if (entry.deadline > given_.clock.steady_now()) asked_before = entry.approval;
    }
    if (asked_before == nullptr) admitted = admit(request);
    if (asked_before == nullptr && admitted) {
      request.id = crypto::random_hex(16);
      request.created_at = given_.clock.wall_now();
      auto time_to_live = given_.time_to_live();
      request.expires_at = request.created_at + time_to_live;
      Entry entry;
      entry.deadline = given_.clock.steady_now() + time_to_live;
      made = std::make_shared<const Approval>(std::move(request));
      entry.approval = made;
      entry.askers.push_back(std::move(done));
      arguments_bytes_ += made->subject.arguments.size();
      pending_digests_[made->digest] = made->id;
      entries_.emplace(made->id, std::move(entry));
    }
  }
  if (!admitted) return done(std::unexpected(admitted.error()));
  if (asked_before != nullptr) {
    audit::Record again = record_of(*asked_before, "approval_requested");
    again.reason = "asked_again";
    again.detail = fmt::format("approval {}", asked_before->id);
    record(std::move(again));
    return done(asked_before);
  }
  write_request(made);
}

void ApprovalDesk::write_request(const Snapshot& request) {
  audit::Record entry = record_of(*request, "approval_requested");
  entry.arguments = request->subject.arguments;
  entry.reason = "approval_required";
  entry.detail =
      fmt::format("approval {} for the key {}, digest {}, needs {}, until {}", request->id, request->subject.agent_key,
                  request->digest, request->needed, format_rfc3339(request->expires_at));
  auto self = shared_from_this();
  auto on_durable = [self, request](Result<std::uint64_t> written) {
    if (!written) return self->settle_request(request->id, std::unexpected(written.error()));
    self->given_.database.post([self, request](store::Connection& connection) {
      self->settle_request(request->id, rows::insert(connection, *request));
    });
  };
  auto queued = given_.log == nullptr ? fail(ErrorCode::unavailable, "there is no audit log")
                                      : given_.log->append(std::move(entry), std::move(on_durable));
  if (!queued) settle_request(request->id, std::unexpected(queued.error()));
}

void ApprovalDesk::settle_request(const std::string& id, Result<void> written) {
  std::vector<Asker> askers;
  Snapshot approval;
  {
    std::lock_guard lock(mutex_);
    auto found = entries_.find(id);
    if (found == entries_.end()) return;
    approval = found->second.approval;
    askers = std::exchange(found->second.askers, {});
    found->second.on_disk = written.has_value();
    if (!written) {
      arguments_bytes_ -= approval->subject.arguments.size();
      pending_digests_.erase(approval->digest);
      entries_.erase(found);
    }
  }
  for (Asker& asker : askers) {
    if (written) {
      asker(approval);
    } else {
      asker(fail(written.error().code, "the request cannot be recorded: {}", written.error().message));
    }
  }
}

std::expected<std::string, std::string> ApprovalDesk::redeem(std::string_view id,
                                                             const policy::ApprovalSubject& subject) {
  std::lock_guard lock(mutex_);
  auto found = entries_.find(std::string(id));
  if (found == entries_.end() || !found->second.on_disk) return std::unexpected("approval_unknown");
  Entry& entry = found->second;
  const Approval& approval = *entry.approval;
  if (approval.status != ApprovalStatus::approved) return std::unexpected("approval_unknown");
  if (!std::exchange(entry.redeemable, false)) return std::unexpected("approval_used");
  if (approval.subject.policy_version != subject.policy_version) return std::unexpected("policy_changed");
  if (approval.subject.agent_key != subject.agent_key) return std::unexpected("agent_key_changed");
  if (approval.digest != policy::digest_of(subject)) return std::unexpected("approval_changed");
  return approval.call_id;
}

// Words of other people.

void ApprovalDesk::decide(Word word, Decider done) {
  given_.database.post([self = shared_from_this(), word = std::move(word),
                        done = std::move(done)](store::Connection& connection) mutable {
    self->decide_now(connection, std::move(word), std::move(done));
  });
}

Result<void> ApprovalDesk::check_word(const Word& word, const Approval& approval) const {
  if (word.action == ApprovalAction::withdraw) {
    if (word.by.identity() == approval.subject.identity) return {};
    return fail(ErrorCode::permission_denied, "not_requester: only its requester can withdraw a request");
  }
  policy::Decision decision = given_.funnel.policy()->check_approver(word.by, approval.subject);
  if (!decision.allowed()) {
    return fail(ErrorCode::permission_denied, "{}: {}", decision.reason, decision.message);
  }
  bool has_spoken = std::ranges::any_of(approval.votes,
                                        [&](const ApprovalVote& vote) { return vote.identity == word.by.identity(); });
  if (word.action == ApprovalAction::approve && has_spoken) {
    return fail(ErrorCode::already_exists, "you have approved {} already; it needs another person", approval.id);
  }
  if (!word.digest.empty() && word.digest != approval.digest) {
    return fail(ErrorCode::invalid_argument, "this is not the request that was shown: its digest is {}",
                approval.digest);
  }
  if (approval.digest != policy::digest_of(approval.subject)) {
    return fail(ErrorCode::invalid_argument, "request {} was changed after it was asked and can't be approved",
                approval.id);
  }
  return {};
}

void ApprovalDesk::decide_now(store::Connection& connection, Word word, Decider done) {
  Snapshot before = snapshot(word.id);
  bool is_late = false;
  {
    std::lock_guard lock(mutex_);
    if (closing_) return done(fail(ErrorCode::unavailable, "the gateway is stopping; try again in a moment"));
    if (before != nullptr) is_late = entries_.at(before->id).deadline <= given_.clock.steady_now();
  }
  if (before == nullptr) return done(fail(ErrorCode::not_found, "there is no approval {}", quote(word.id)));
  if (before->status == ApprovalStatus::pending && is_late) {
    expire_now(connection, before);
    before = snapshot(word.id);
  }
  Result<void> checked = check_word(word, *before);
  // Who may not decide learns no more than that.
  bool is_refused = !checked && checked.error().code == ErrorCode::permission_denied;
  if (!is_refused && before->status != ApprovalStatus::pending) checked = decided(*before);
  if (!checked) {
    audit::Record refused = record_of(word, *before, "approval_refused");
    refused.outcome = Outcome::denied;
    refused.reason = is_refused ? checked.error().message.substr(0, checked.error().message.find(':'))
                                : std::string(to_string(checked.error().code));
    refused.detail = fmt::format("approval {}, {}: {}", before->id, name_of(word.action), checked.error().message);
    record(std::move(refused));
    return done(std::unexpected(checked.error()));
  }

  word.comment.resize(std::min(word.comment.size(), max_comment_bytes));
  ApprovalVote vote{word.by.name, word.by.identity(), given_.clock.wall_now(), word.comment};
  Approval after = *before;
  switch (word.action) {
    case ApprovalAction::approve:
      after.votes.push_back(vote);
      if (after.votes.size() >= after.needed) after.status = ApprovalStatus::approved;
      break;
    case ApprovalAction::reject:
      after.refusal = vote;
      after = ended(after, ApprovalStatus::rejected, refusal("approval_rejected", "", Outcome::denied), vote.at);
      break;
    case ApprovalAction::withdraw:
      after.refusal = vote;
      after = ended(after, ApprovalStatus::withdrawn, refusal("approval_withdrawn", "", Outcome::cancelled), vote.at);
      break;
  }
  std::optional<CallResult> result;
  if (after.outcome) {
    result = refusal(after.reason,
                     word.action == ApprovalAction::reject
                         ? fmt::format("{} refused to approve this call{}{}", vote.principal,
                                       vote.comment.empty() ? "" : ": ", vote.comment)
                         : "the requester has withdrawn this call",
                     *after.outcome);
  }
  Result<void> written = connection.transaction([&](store::Connection& inside) -> Result<void> {
    TRY(rows::insert_word(inside, after.id, name_of(word.action), vote));
    return rows::update(inside, after, result ? &*result : nullptr);
  });
  if (!written) {
    return done(fail(ErrorCode::io, "the decision cannot be kept: {}", written.error().message));
  }
  put(after);
  record_decision(word, snapshot(after.id), std::move(done));
}

void ApprovalDesk::record_decision(const Word& word, const Snapshot& after, Decider done) {
  audit::Record entry = record_of(word, *after, std::string(event_of(word.action)));
  entry.reason = word.action == ApprovalAction::approve && after->status == ApprovalStatus::pending ? "needs_more" : "";
  entry.detail = fmt::format("approval {} of {}, {} of {}{}{}", after->id, after->subject.principal,
                             after->votes.size(), after->needed, word.comment.empty() ? "" : ": ", word.comment);
  auto self = shared_from_this();
  auto shared_done = std::make_shared<Decider>(std::move(done));
  auto queued = given_.log->append(std::move(entry), [self, after, shared_done](Result<std::uint64_t> written) {
    if (written) {
      (*shared_done)(after);
      return self->after_decision(after);
    }
    (*shared_done)(fail(ErrorCode::io, "the decision cannot be recorded: {}", written.error().message));
    self->end(after, after->status, refusal("audit_unavailable", "the approval could not be recorded"), true);
  });
  if (queued) return;
  (*shared_done)(fail(ErrorCode::io, "the decision cannot be recorded: {}", queued.error().message));
  end(after, after->status, refusal("audit_unavailable", "the approval could not be recorded"), true);
}

void ApprovalDesk::after_decision(const Snapshot& after) {
  if (after->status == ApprovalStatus::pending) return;
  if (after->status == ApprovalStatus::approved) return run(after);
  audit::Record outcome = record_of(*after, "tool_call");
  outcome.kind = audit::RecordKind::outcome;
  outcome.outcome = after->outcome;
  outcome.reason = after->reason;
  record(std::move(outcome));
  std::vector<std::shared_ptr<Waiter>> waiters;
  {
    std::lock_guard lock(mutex_);
    auto found = entries_.find(after->id);
    if (found != entries_.end()) waiters = std::exchange(found->second.waiters, {});
  }
  for (const auto& waiter : waiters)
    answer(waiter, after->id);
}

// The call and its end.

void ApprovalDesk::run(const Snapshot& approved) {
  auto principal = given_.refresh(approved->requester);
  if (!principal) {
    return end(approved, ApprovalStatus::approved,
               refusal("credential_revoked", "the credential by which this was asked is not accepted any more"), true);
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
  call.arguments = approved->subject.arguments;
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
  SteadyTime now = given_.clock.steady_now();
  std::vector<std::string> due;
  bool forget = false;
  {
    std::lock_guard lock(mutex_);
    for (const auto& [id, entry] : entries_) {
      if (entry.on_disk && entry.approval->status == ApprovalStatus::pending && entry.deadline <= now)
        due.push_back(id);
    }
    if (now - last_forgetting_ >= forget_period) {
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
  for (std::size_t i = 0; i < done.size(); ++i) {
    if (i < options_.max_ended && *done[i]->ended_at >= oldest) continue;
    if (Result<void> removed = rows::remove(connection, done[i]->id); !removed) {
      log::error("an old approval cannot be removed", {{"approval", done[i]->id}, {"reason", removed.error().message}});
      return;
    }
    std::lock_guard lock(mutex_);
    arguments_bytes_ -= done[i]->subject.arguments.size();
    entries_.erase(done[i]->id);
  }
}

// Looking.

std::vector<Approvals::Snapshot> ApprovalDesk::list(const policy::Principal& viewer, bool only_pending) const {
  std::vector<Snapshot> found;
  {
    std::lock_guard lock(mutex_);
    for (const auto& [id, entry] : entries_) {
      if (!entry.on_disk) continue;
      if (only_pending && entry.approval->status != ApprovalStatus::pending) continue;
      found.push_back(entry.approval);
    }
  }
  std::erase_if(found, [&](const Snapshot& approval) { return !reaches(viewer, *approval); });
  std::ranges::sort(found, [](const Snapshot& left, const Snapshot& right) {
    return std::tie(left->created_at, left->id) > std::tie(right->created_at, right->id);
  });
  return found;
}

Approvals::Snapshot ApprovalDesk::find(const policy::Principal& viewer, std::string_view id) const {
  Snapshot approval = snapshot(id);
  return approval != nullptr && reaches(viewer, *approval) ? approval : nullptr;
}

bool ApprovalDesk::reaches(const policy::Principal& viewer, const Approval& approval) const {
  if (viewer.identity() == approval.subject.identity) return true;
  return given_.funnel.policy()->reaches(viewer, approval.subject.agent, approval.subject.tool);
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
  bool is_closing = false;
  {
    std::lock_guard lock(mutex_);
    auto found = entries_.find(id);
    has_ended = found == entries_.end() || found->second.approval->outcome.has_value();
    is_closing = closing_;
    if (!has_ended && !is_closing && patience.count() > 0) found->second.waiters.push_back(waiter);
  }
  if (has_ended) return answer(waiter, std::move(id));
  if (is_closing || patience.count() <= 0) return answer_now(waiter, std::optional<CallResult>());
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

void ApprovalDesk::put(const Approval& approval) {
  auto shared = std::make_shared<const Approval>(approval);
  std::lock_guard lock(mutex_);
  auto found = entries_.find(approval.id);
  if (found == entries_.end()) return;
  found->second.approval = std::move(shared);
  if (approval.status != ApprovalStatus::pending) pending_digests_.erase(approval.digest);
}

Approvals::Snapshot ApprovalDesk::snapshot(std::string_view id) const {
  std::lock_guard lock(mutex_);
  auto found = entries_.find(std::string(id));
  return found == entries_.end() || !found->second.on_disk ? nullptr : found->second.approval;
}

void ApprovalDesk::record(audit::Record record) {
  if (given_.log == nullptr) return;
  std::string action = record.action;
  if (auto queued = given_.log->append(std::move(record)); !queued) {
    log::error("an event is not recorded", {{"action", action}, {"reason", queued.error().message}});
  }
}

}  // namespace hive::calls
