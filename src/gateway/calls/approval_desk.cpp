#include "gateway/calls/approval_desk.h"

#include <algorithm>

#include "base/log.h"
#include "crypto/random.h"
#include "gateway/calls/approval_records.h"
#include "gateway/calls/approval_rows.h"
#include "gateway/calls/results.h"

namespace hive::calls {

using protocol::Outcome;

namespace {

constexpr std::chrono::seconds sweep_period(1);

}  // namespace

Result<std::shared_ptr<Approvals>> Approvals::open(Dependencies dependencies, Options options) {
  store::Database& database = dependencies.database;
  auto desk = std::make_shared<ApprovalDesk>(std::move(dependencies), options);
  Result<void> restored;
  database.run([&](store::Connection& connection) { restored = desk->restore(connection); });
  if (!restored) return std::unexpected(with_context(std::move(restored).error(), "the approvals of the last run"));
  desk->start();
  return desk;
}

Result<void> ApprovalDesk::restore(store::Connection& connection) {
  std::vector<Approval> kept = TRY(rows::load(connection));
  WallTime now = given_.clock.wall_now();
  SteadyTime steady = given_.clock.steady_now();
  std::vector<Snapshot> interrupted;
  std::vector<Snapshot> voted;  // a kill may have come between such a word and its entry in the log
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
    if (shared->ended_at) count_ended(*shared);
    if (shared->status == ApprovalStatus::pending) pending_digests_[shared->digest] = shared->id;
    if (shared->status == ApprovalStatus::approved && !shared->outcome) interrupted.push_back(shared);
    if (shared->status == ApprovalStatus::pending && !shared->votes.empty()) voted.push_back(shared);
    entries_.emplace(shared->id, std::move(entry));
  }
  for (const Snapshot& approval : voted) {
    audit::Record entry = record_of(*approval, "approval_restored");
    entry.detail = fmt::format("approval {}: {} of {} had agreed before the restart", approval->id,
                               approval->votes.size(), approval->needed);
    record(std::move(entry));
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
  std::size_t bytes = request.subject.arguments.size();
  std::size_t bytes_of_requester = bytes;
  for (const auto& [id, entry] : entries_) {
    if (entry.approval->status != ApprovalStatus::pending) continue;
    ++pending;
    bytes += entry.approval->subject.arguments.size();
    if (entry.approval->subject.identity != request.subject.identity) continue;
    ++of_requester;
    bytes_of_requester += entry.approval->subject.arguments.size();
  }
  if (pending >= options_.max_pending) {
    return fail(ErrorCode::resource_exhausted, "{} requests wait for an approval already; decide or withdraw some",
                pending);
  }
  if (of_requester >= options_.max_pending_per_principal) {
    return fail(ErrorCode::resource_exhausted, "{} requests of yours wait for an approval already; withdraw some",
                of_requester);
  }
  if (bytes_of_requester > options_.max_arguments_bytes_per_principal) {
    return fail(ErrorCode::resource_exhausted,
                "the arguments of your requests that wait are too large together; withdraw some");
  }
  if (bytes > options_.max_arguments_bytes) {
    return fail(ErrorCode::resource_exhausted,
                "the arguments of all requests that wait are too large together; decide or withdraw some");
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
      forget_digest(*approval);
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

void ApprovalDesk::put(const Approval& approval) {
  auto shared = std::make_shared<const Approval>(approval);
  std::lock_guard lock(mutex_);
  auto found = entries_.find(approval.id);
  if (found == entries_.end()) return;
  bool had_ended = found->second.approval->ended_at.has_value();
  found->second.approval = std::move(shared);
  if (approval.status != ApprovalStatus::pending) forget_digest(approval);
  if (approval.ended_at && !had_ended) count_ended(approval);
}

// A younger request for the same call may have taken the place of one that ran out.
void ApprovalDesk::forget_digest(const Approval& approval) {
  auto found = pending_digests_.find(approval.digest);
  if (found != pending_digests_.end() && found->second == approval.id) pending_digests_.erase(found);
}

void ApprovalDesk::count_ended(const Approval& approval) {
  ++ended_;
  ended_arguments_bytes_ += approval.subject.arguments.size();
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
