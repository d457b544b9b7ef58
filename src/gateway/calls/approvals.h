#pragma once

#include <chrono>
#include <expected>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "gateway/audit/log.h"
#include "gateway/calls/call.h"
#include "gateway/calls/funnel.h"
#include "gateway/policy/approval.h"
#include "gateway/policy/policy.h"
#include "gateway/store/database.h"

namespace hive::calls {

enum class ApprovalStatus {
  pending,
  approved,   ///< the call runs or has run; see outcome
  rejected,   ///< somebody said no
  withdrawn,  ///< by the requester
  expired,    ///< nobody decided in time
};
std::string_view to_string(ApprovalStatus status);
std::optional<ApprovalStatus> approval_status_from_string(std::string_view name);

struct ApprovalVote {
  std::string principal;
  std::string identity;
  WallTime at;
  std::string comment;
};

/// A call that waits, or waited, for other people.
struct Approval {
  std::string id;      ///< 32 hexadecimal digits, at random
  std::string digest;  ///< policy::digest_of(subject)
  policy::ApprovalSubject subject;
  TargetKind target = TargetKind::agent;
  std::string method;  ///< of a call to an upstream; see Call::method
  policy::Principal requester;
  std::string request_id;
  std::string call_id;
  Surface surface = Surface::rest;
  bool after_untrusted_text = false;
  std::chrono::milliseconds timeout{0};
  WallTime created_at;
  WallTime expires_at;
  ApprovalStatus status = ApprovalStatus::pending;
  unsigned needed = 1;
  std::vector<ApprovalVote> votes;      ///< of those who agreed
  std::optional<ApprovalVote> refusal;  ///< of who rejected or withdrew it
  std::optional<WallTime> ended_at;
  std::optional<protocol::Outcome> outcome;  ///< once the call has ended, in whatever way
  std::string reason;                        ///< with the outcome: a short code
};

enum class ApprovalAction { approve, reject, withdraw };

/// The calls that wait for other people, on disk before anybody is told of them. Thread-safe.
class Approvals {
 public:
  struct Options {
    std::size_t max_pending = 1000;
    std::size_t max_pending_per_principal = 100;
    std::size_t max_ended = 2000;                             ///< requests that have ended and can still be looked up
    std::size_t max_arguments_bytes = std::size_t{64} << 20;  ///< of those that wait; as much again of those that ended
    std::size_t max_arguments_bytes_per_principal = std::size_t{16} << 20;
    std::size_t max_result_bytes = std::size_t{256} << 10;  ///< of a kept result; a larger one is replaced by an error
    std::chrono::hours keep{24};                            ///< how long a request can be looked up after its end
    std::size_t max_waiters = 64;  ///< for the result of one request; whoever comes after them is not kept waiting
  };
  struct Dependencies {
    store::Database& database;
    Funnel& funnel;
    net::Runtime& runtime;
    audit::Log* log = nullptr;
    const Clock& clock;
    /// What the credential of a requester is worth now: nullopt if it is not accepted any more. Any thread.
    std::function<std::optional<policy::Principal>(const policy::Principal&)> refresh = {};
    /// How long a request waits.
    std::function<std::chrono::seconds()> time_to_live = {};
  };

  /// Reads what the last run of the gateway left behind. A call that was approved and had not ended then ends as
  /// unknown.
  /// Everything that is given must outlive what was posted to the database.
  static Result<std::shared_ptr<Approvals>> open(Dependencies dependencies, Options options);
  virtual ~Approvals() = default;

  using Snapshot = std::shared_ptr<const Approval>;  ///< as it was at that moment

  /// What waits, or everything that is still kept, as far as `viewer` reaches; newest first.
  [[nodiscard]] virtual std::vector<Snapshot> list(const policy::Principal& viewer, bool only_pending) const = 0;
  /// null: unknown, or not for this viewer. The requester may always look.
  [[nodiscard]] virtual Snapshot find(const policy::Principal& viewer, std::string_view id) const = 0;

  /// Somebody's word on a request. `digest`: what the approver saw; empty if it was not given, otherwise it must be the
  /// request's. `done` runs once, on some thread, when the word is on disk or refused, with the request as it is then.
  /// An approved call runs by itself, after that.
  /// Refusals: not_found; permission_denied with a message that begins with the reason code ("own_request: ..."),
  /// already_exists for one that is decided, timed_out for one that has expired, invalid_argument for another digest.
  struct Word {
    policy::Principal by;
    std::string id;
    ApprovalAction action = ApprovalAction::approve;
    std::string digest;
    std::string comment;
    std::string request_id;
    Surface surface = Surface::rest;
  };
  virtual void decide(Word word, std::move_only_function<void(Result<Snapshot>)> done) = 0;

  /// The result of a request's call, for its requester (by any credential of the same identity) and for admins in whose
  /// scope it is; waits up to `patience` for it. `done` runs once, on `worker`, later: the result, nullopt while the
  /// call has not ended. Errors: not_found; permission_denied; unavailable when the result is not kept any more.
  virtual void result(net::Worker& worker, const policy::Principal& viewer, std::string id,
                      std::chrono::milliseconds patience,
                      std::move_only_function<void(Result<std::optional<CallResult>>)> done) = 0;

  /// Ends what has waited too long. Happens by itself about once a second.
  virtual void sweep() = 0;

  /// Answers those who wait for results, and refuses new requests and words from now on. Before the gateway drains.
  virtual void close() = 0;

 private:
  friend class ApprovalAccess;

  /// For the funnel. Keeps a call that waits for other people, with what the caller of this function knows of it; an
  /// identical one of the same requester that waits already is not asked twice. `done` runs once, on the store's
  /// thread, when the request is in the audit log and on disk. Refusals: resource_exhausted when too many wait, and
  /// what the disk or the log says.
  virtual void ask(Approval request, std::move_only_function<void(Result<Snapshot>)> done) = 0;

  /// Takes the one approval of a call and returns the id under which the call was recorded, if it was approved for
  /// exactly this and not taken before. Otherwise the reason: "approval_unknown", "approval_used", "policy_changed",
  /// "agent_key_changed", "approval_changed".
  virtual std::expected<std::string, std::string> redeem(std::string_view id,
                                                         const policy::ApprovalSubject& subject) = 0;
};

}  // namespace hive::calls
