#pragma once

#include <atomic>
#include <mutex>
#include <unordered_map>

#include "gateway/audit/refusal_log.h"
#include "gateway/calls/approvals.h"

namespace hive::calls {

/// The calls that wait, in memory and in the database. Every change happens on the store's thread, one after another,
/// so that two words on one request cannot cross; what is read from other threads are immutable snapshots.
class ApprovalDesk final : public Approvals, public std::enable_shared_from_this<ApprovalDesk> {
 public:
  ApprovalDesk(Dependencies dependencies, Options options)
      : given_(std::move(dependencies)), refusals_(given_.clock), options_(options) {}

  /// Takes over what the last run left. On the store's thread.
  Result<void> restore(store::Connection& connection);
  /// Begins to sweep.
  void start();

  std::vector<Snapshot> list(const policy::Principal& viewer, bool only_pending) const override;
  Snapshot find(const policy::Principal& viewer, std::string_view id) const override;
  void decide(Word word, std::move_only_function<void(Result<Snapshot>)> done) override;
  void result(net::Worker& worker, const policy::Principal& viewer, std::string id, std::chrono::milliseconds patience,
              std::move_only_function<void(Result<std::optional<CallResult>>)> done) override;
  void sweep() override;
  void close() override;

 private:
  using Asker = std::move_only_function<void(Result<Snapshot>)>;
  using Decider = std::move_only_function<void(Result<Snapshot>)>;

  /// Somebody who waits for a result; answered once, by the end of the call or by the end of patience.
  struct Waiter {
    net::Worker& worker;
    std::move_only_function<void(Result<std::optional<CallResult>>)> done;
    net::Timer timer;  // on the worker
    std::atomic<bool> answered = false;
  };

  struct Entry {
    Snapshot approval;
    SteadyTime deadline;
    std::vector<Asker> askers;  // until it is on disk; nobody else sees it before
    bool on_disk = false;
    bool redeemable = false;  // approved, and not taken
    std::vector<std::shared_ptr<Waiter>> waiters;
  };

  void ask(Approval request, Asker done) override;
  std::expected<std::string, std::string> redeem(std::string_view id, const policy::ApprovalSubject& subject) override;

  Result<void> admit(const Approval& request) const;  // with mutex_ held
  void write_request(const Snapshot& request);
  void settle_request(const std::string& id, Result<void> written);

  void decide_now(store::Connection& connection, Word word, Decider done);
  [[nodiscard]] Result<void> check_word(const Word& word, const Approval& approval) const;
  void record_decision(const Word& word, const Snapshot& after, Decider done);
  void after_decision(const Snapshot& after);

  void run(const Snapshot& approved);
  void end(const Snapshot& approval, ApprovalStatus status, CallResult result, bool write_outcome);
  void end_now(store::Connection& connection, const Snapshot& approval, ApprovalStatus status, const CallResult& result,
               bool write_outcome);
  void expire_now(store::Connection& connection, const Snapshot& approval);
  void forget_old(store::Connection& connection);
  [[nodiscard]] bool keeps_too_much() const;  // with mutex_ held

  void answer(const std::shared_ptr<Waiter>& waiter, std::string id);
  static void answer_now(const std::shared_ptr<Waiter>& waiter, Result<std::optional<CallResult>> result);

  void put(const Approval& approval);
  void forget_digest(const Approval& approval);  // with mutex_ held
  void count_ended(const Approval& approval);    // with mutex_ held
  [[nodiscard]] Snapshot snapshot(std::string_view id) const;
  [[nodiscard]] bool reaches(const policy::Principal& viewer, const Approval& approval) const;
  void schedule_sweep(net::Worker& worker);
  void record(audit::Record record);

  Dependencies given_;
  audit::RefusalLog refusals_;
  const Options options_;

  mutable std::mutex mutex_;
  std::unordered_map<std::string, Entry> entries_;                // guarded by mutex_
  std::unordered_map<std::string, std::string> pending_digests_;  // digest to id; guarded by mutex_
  std::size_t ended_ = 0;                                         // guarded by mutex_; entries that have ended
  std::size_t ended_arguments_bytes_ = 0;                         // guarded by mutex_; theirs
  bool closing_ = false;                                          // guarded by mutex_
  SteadyTime last_forgetting_;                                    // guarded by mutex_
  net::Timer sweep_timer_;                                        // on the first worker
};

}  // namespace hive::calls
