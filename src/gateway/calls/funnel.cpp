#include "gateway/calls/funnel.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <unordered_set>

#include "base/log.h"
#include "crypto/random.h"
#include "gateway/audit/refusal_log.h"
#include "gateway/calls/dry_run.h"
#include "gateway/calls/passage.h"
#include "gateway/calls/results.h"

namespace hive::calls {

namespace {

// Entries in a minute about calls of one principal that a gate refused; further ones are summed up in one.
constexpr std::uint32_t refusals_in_a_period = 120;

class FunnelImpl final : public Funnel, public PassageHost {
 public:
  FunnelImpl(fleet::Fleet& fleet, std::shared_ptr<const policy::Policy> policy, audit::Log* log, const Clock& clock,
             Options options)
      : fleet_(fleet),
        log_(log),
        clock_(clock),
        options_(options),
        callers_(options.max_calls_per_caller),
        waiting_callers_(options.max_waiting_per_caller),
        policy_(std::move(policy)) {}

  std::shared_ptr<RunningCall> run(net::Worker& worker, Call call,
                                   std::move_only_function<void(CallResult)> done) override {
    record_refusals(false);
    auto passage = std::make_shared<Passage>(*this, worker, std::move(call), std::move(done));
    on_started(passage);
    passage->start();
    return passage;
  }

  void explain(net::Worker& worker, Call call, std::move_only_function<void(Explanation)> done) override {
    explain_call(*this, worker, std::move(call), std::move(done));
  }

  void set_upstreams(upstreams::Upstreams* upstreams) override { upstreams_ = upstreams; }

  void set_approvals(Approvals* approvals) override { approvals_ = approvals; }

  void set_refresh(Refresh refresh) override { refresh_ = std::move(refresh); }

  [[nodiscard]] std::expected<policy::Principal, CallResult> refresh(const policy::Principal& earlier) const override {
    const auto& grant = earlier.grant;
    if (grant != nullptr && grant->expires_at && *grant->expires_at <= clock_.wall_now()) {
      return std::unexpected(refusal("credential_expired", "the credential has expired since this was asked"));
    }
    if (refresh_ == nullptr) return earlier;
    if (auto now = refresh_(earlier)) return *std::move(now);
    return std::unexpected(
        refusal("credential_revoked", "the credential is not accepted any more by which this was asked"));
  }

  void set_policy(std::shared_ptr<const policy::Policy> policy) override {
    std::lock_guard lock(mutex_);
    policy_ = std::move(policy);
  }

  [[nodiscard]] std::shared_ptr<const policy::Policy> policy() const override {
    std::lock_guard lock(mutex_);
    return policy_;
  }

  void drain(net::Task drained) override {
    {
      std::lock_guard lock(mutex_);
      draining_ = true;
    }
    // From here on each refusal is written by itself, so nothing that was counted is left behind.
    record_refusals(true);
    {
      std::lock_guard lock(mutex_);
      if (!running_.empty()) {
        drained_ = std::move(drained);
        return;
      }
    }
    drained();
  }

  void cancel_all(std::string_view reason) override {
    std::vector<std::shared_ptr<RunningCall>> running;
    {
      std::lock_guard lock(mutex_);
      running.assign(running_.begin(), running_.end());
    }
    for (const auto& passage : running)
      passage->cancel(reason);
  }

  [[nodiscard]] std::size_t in_flight() const override {
    std::lock_guard lock(mutex_);
    return running_.size();
  }

  fleet::Fleet& fleet() override { return fleet_; }
  audit::Log* log() override { return log_; }
  const Clock& clock() override { return clock_; }
  Approvals* approvals() override { return approvals_; }
  upstreams::Upstreams* upstreams() override { return upstreams_; }
  const Options& options() override { return options_; }
  std::shared_ptr<const policy::Policy> current_policy() override { return policy(); }

  CallerLimit& callers() override { return callers_; }
  CallerLimit& waiting_callers() override { return waiting_callers_; }

  bool is_draining() override {
    std::lock_guard lock(mutex_);
    return draining_;
  }

  std::string next_call_id() override {
    return fmt::format("{}-{}", boot_id_, next_call_.fetch_add(1, std::memory_order_relaxed));
  }

  std::optional<audit::Record> admit_refusal(audit::Record refusal) override {
    if (is_draining()) return refusal;
    return refusals_.admit(std::move(refusal));
  }

  void on_started(std::shared_ptr<RunningCall> passage) override {
    std::lock_guard lock(mutex_);
    running_.insert(std::move(passage));
  }

  void on_ended(const std::shared_ptr<RunningCall>& passage) override {
    net::Task drained;
    {
      std::lock_guard lock(mutex_);
      running_.erase(passage);
      if (running_.empty()) drained = std::exchange(drained_, nullptr);
    }
    if (drained) drained();
  }

 private:
  void record_refusals(bool all) {
    if (log_ == nullptr) return;
    for (audit::Record& entry : refusals_.take_due(all)) {
      if (auto queued = log_->append(std::move(entry)); !queued) {
        log::error("refused calls are not recorded", {{"reason", queued.error().message}});
      }
    }
  }

  fleet::Fleet& fleet_;
  audit::Log* const log_;
  const Clock& clock_;
  const Options options_;
  CallerLimit callers_;
  CallerLimit waiting_callers_;
  Refresh refresh_;
  Approvals* approvals_ = nullptr;
  upstreams::Upstreams* upstreams_ = nullptr;
  // Call ids are unique over restarts: intents and outcomes of different runs of the gateway must never be joined.
  const std::string boot_id_ = crypto::random_hex(4);
  std::atomic<std::uint64_t> next_call_ = 1;
  audit::RefusalLog refusals_{clock_, {.written_in_a_period = refusals_in_a_period}};
  mutable std::mutex mutex_;
  std::shared_ptr<const policy::Policy> policy_;              // guarded by mutex_
  std::unordered_set<std::shared_ptr<RunningCall>> running_;  // guarded by mutex_
  bool draining_ = false;                                     // guarded by mutex_
  net::Task drained_;                                         // guarded by mutex_
};

}  // namespace

std::unique_ptr<Funnel> Funnel::create(fleet::Fleet& fleet, std::shared_ptr<const policy::Policy> policy,
                                       audit::Log* log, const Clock& clock, Options options) {
  return std::make_unique<FunnelImpl>(fleet, std::move(policy), log, clock, options);
}

}  // namespace hive::calls
