#include <algorithm>

#include "base/log.h"
#include "base/strings.h"
#include "gateway/calls/approval_desk.h"
#include "gateway/calls/approval_records.h"
#include "gateway/calls/approval_rows.h"
#include "gateway/calls/results.h"
#include "gateway/policy/identity.h"

namespace hive::calls {

using protocol::Outcome;

namespace {

constexpr std::size_t max_comment_bytes = 1000;

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

/// The code by which a refused word is known, here and on every surface.
std::string reason_of(const Error& error) {
  switch (error.code) {
    case ErrorCode::permission_denied:
      return error.message.substr(0, error.message.find(':'));
    case ErrorCode::already_exists:
      return "approval_decided";
    case ErrorCode::timed_out:
      return "approval_expired";
    case ErrorCode::invalid_argument:
      return "digest_differs";
    default:
      return std::string(to_string(error.code));
  }
}

/// By whichever credential and spelling, as a requester is told from an approver.
bool is_same_person(const ApprovalVote& vote, const policy::Principal& by) {
  for (std::string_view spoke : {std::string_view(vote.identity), std::string_view(vote.principal)}) {
    if (policy::equal_ignoring_case(spoke, by.identity()) || policy::equal_ignoring_case(spoke, by.name)) return true;
  }
  return false;
}

std::unexpected<Error> decided(const Approval& approval) {
  if (approval.status == ApprovalStatus::expired) {
    return fail(ErrorCode::timed_out, "approval {} expired at {}; the call must be asked for again", approval.id,
                format_rfc3339(approval.expires_at));
  }
  return fail(ErrorCode::already_exists, "approval {} is {} already", approval.id, to_string(approval.status));
}

}  // namespace

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
  bool has_spoken =
      std::ranges::any_of(approval.votes, [&](const ApprovalVote& vote) { return is_same_person(vote, word.by); });
  if (word.action == ApprovalAction::approve && has_spoken) {
    return fail(ErrorCode::already_exists, "you have approved {} already; it needs another person", approval.id);
  }
  if (!word.digest.empty() && word.digest != approval.digest) {
    return fail(ErrorCode::invalid_argument,
                "the digest is not that of request {}; look at it again and send the digest "
                "that is shown",
                approval.id);
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
    refused.reason = reason_of(checked.error());
    refused.detail = fmt::format("approval {}, {}: {}", before->id, name_of(word.action), checked.error().message);
    if (auto admitted = refusals_.admit(std::move(refused))) record(*std::move(admitted));
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
                         ? fmt::format("{} refused to approve this call{}{}", vote.identity,
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
  entry.detail = fmt::format("approval {} of {}, {} of {}{}{}", after->id, after->subject.identity, after->votes.size(),
                             after->needed, word.comment.empty() ? "" : ": ", word.comment);
  auto shared_done = std::make_shared<Decider>(std::move(done));
  auto on_failure = [self = shared_from_this(), after, shared_done](const Error& error) {
    (*shared_done)(fail(ErrorCode::io, "the decision cannot be recorded: {}", error.message));
    // The word is on disk, so the request must not wait for others any more: it would run with a word that no entry of
    // the log tells of.
    bool waits = after->status == ApprovalStatus::pending;
    self->end(after, waits ? ApprovalStatus::rejected : after->status,
              refusal("audit_unavailable", "the approval could not be recorded"), true);
  };
  auto queued = given_.log->append(
      std::move(entry), [self = shared_from_this(), after, shared_done, on_failure](Result<std::uint64_t> written) {
        if (!written) return on_failure(written.error());
        (*shared_done)(after);
        self->after_decision(after);
      });
  if (!queued) on_failure(queued.error());
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

}  // namespace hive::calls
