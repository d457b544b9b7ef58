#include "gateway/calls/fan_out.h"

#include <algorithm>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "base/log.h"
#include "base/strings.h"
#include "base/utf8.h"
#include "gateway/audit/refusal_log.h"
#include "gateway/calls/fan_out_targets.h"
#include "gateway/calls/results.h"

namespace hive::calls {

using protocol::Outcome;

namespace {

constexpr std::string_view stopped = "fan_out_stopped";
constexpr std::string_view past_deadline = "fan_out_deadline";
constexpr std::string_view withdrawn = "fan_out_cancelled";
constexpr std::string_view draining = "draining";

std::size_t& count_of(FanOutCounts& counts, Outcome outcome) {
  return counts.by_outcome[static_cast<std::size_t>(outcome)];
}

std::string counts_text(const FanOutCounts& counts) {
  std::string text;
  auto add = [&text](std::size_t count, std::string_view name) {
    if (count > 0) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, name);
  };
  for (std::size_t i = 0; i < FanOutCounts::outcomes; ++i)
    add(counts.by_outcome[i], protocol::to_string(static_cast<Outcome>(i)));
  add(counts.approval_required, "approval_required");
  return text.empty() ? "none" : text;
}

/// What fan-outs share: the room for them, and where they are recorded. Thread-safe.
class FanOutDesk {
 public:
  FanOutDesk(Funnel& given_funnel, audit::Log* log, const Clock& given_clock, FanOuts::Options options)
      : funnel(given_funnel), clock(given_clock), log_(log), options_(options) {}

  /// Counts a fan-out of an identity; false when there are too many.
  bool admit(const std::string& identity) {
    std::lock_guard lock(mutex_);
    if (running_ >= options_.max_running) return false;
    auto found = of_identity_.find(identity);
    if (found != of_identity_.end() && found->second >= options_.max_running_per_identity) return false;
    ++of_identity_[identity];
    ++running_;
    return true;
  }
  void release(const std::string& identity) {
    std::lock_guard lock(mutex_);
    --running_;
    auto found = of_identity_.find(identity);
    if (--found->second == 0) of_identity_.erase(found);
  }

  void record(audit::Record entry) {
    if (log_ == nullptr) return;
    std::string action = entry.action;
    if (auto queued = log_->append(std::move(entry)); !queued) {
      log::error("an event is not recorded", {{"action", action}, {"reason", queued.error().message}});
    }
  }
  /// Many refusals of one principal are summed up.
  void record_refusal(audit::Record entry) {
    for (audit::Record& due : refusals_.take_due())
      record(std::move(due));
    if (auto admitted = refusals_.admit(std::move(entry))) record(*std::move(admitted));
  }

  Funnel& funnel;
  const Clock& clock;

 private:
  audit::Log* const log_;
  const FanOuts::Options options_;
  audit::RefusalLog refusals_{clock};
  std::mutex mutex_;
  std::size_t running_ = 0;                         // guarded by mutex_
  std::map<std::string, std::size_t> of_identity_;  // guarded by mutex_
};

audit::Record event_of(const FanOutRequest& request, std::string action, protocol::Tier tier) {
  audit::Record entry;
  entry.action = std::move(action);
  entry.request_id = request.request_id;
  entry.principal = request.principal.name;
  entry.role = policy::to_string(request.principal.role);
  entry.surface = to_string(request.surface);
  entry.tool = request.tool;
  entry.tier = protocol::to_string(tier);
  entry.on_behalf_of = request.on_behalf_of;
  entry.after_untrusted_text = request.after_untrusted_text;
  return entry;
}

constexpr std::size_t max_targets_text = 1024;  // each agent has an entry of its own

std::string targets_text(const FanOutTargets& targets) {
  if (targets.all) return "all agents";
  std::string text;
  if (!targets.agents.empty()) text = "agents " + join(targets.agents, ",");
  if (!targets.tags.empty()) text += (text.empty() ? "tags " : "; tags ") + join(targets.tags, ",");
  if (text.size() > max_targets_text) text = std::string(utf8::truncate(text, max_targets_text)) + "...";
  return text;
}

/// One request on its way. Everything but cancel() happens on its worker.
class FanOut final : public RunningFanOut, public std::enable_shared_from_this<FanOut> {
 public:
  FanOut(FanOutDesk& desk, net::Worker& worker, FanOutRequest request, ResolvedTargets targets, protocol::Tier tier,
         std::shared_ptr<FanOutSink> sink)
      : desk_(desk),
        worker_(worker),
        request_(std::move(request)),
        targets_(std::move(targets)),
        tier_(tier),
        sink_(std::move(sink)),
        started_(desk.clock.steady_now()) {}

  [[nodiscard]] const std::vector<std::string>& agents() const override { return targets_.agents; }
  [[nodiscard]] std::size_t left_out() const override { return targets_.left_out; }

  /// Those that are waited for come last, so that they hold up nobody who is there. Before begin().
  void put_last(const std::function<bool(const std::string& agent)>& is_away) {
    for (bool away : {false, true}) {
      for (std::size_t place = 0; place < targets_.agents.size(); ++place)
        if (is_away(targets_.agents[place]) == away) turns_.push_back(place);
    }
  }

  void begin() {
    audit::Record entry = event_of(request_, "fan_out_started", tier_);
    entry.detail = fmt::format("{} agents: {}", targets_.agents.size(), targets_text(request_.targets));
    desk_.record(std::move(entry));
    worker_.post([self = shared_from_this()] {
      self->deadline_ = self->worker_.schedule(self->request_.deadline, [weak = self->weak_from_this()] {
        if (auto alive = weak.lock()) alive->stop(past_deadline, past_deadline);
      });
      self->go_on();
    });
  }

  void cancel(std::string_view reason) override {
    worker_.dispatch([self = shared_from_this(), reason = std::string(reason.empty() ? withdrawn : reason)] {
      self->stop(withdrawn, reason);
    });
  }

  void resume() override { go_on(); }

 private:
  void go_on() {
    while (stopped_by_.empty() && running_.size() < request_.concurrency && next_ < targets_.agents.size() &&
           sink_->has_room()) {
      // The request may run for a day, and who asked may have lost the credential, or a part of it, since.
      auto principal = desk_.funnel.refresh(request_.principal);
      if (!principal) {
        no_credential_ = std::move(principal).error();
        return stop(no_credential_->reason, {});
      }
      start_next(*std::move(principal));
    }
    if (running_.empty() && next_ == targets_.agents.size()) finish();
  }

  std::size_t next_place() {
    std::size_t turn = next_++;
    return turns_.empty() ? turn : turns_[turn];
  }

  void start_next(policy::Principal principal) {
    std::size_t place = next_place();
    Call call;
    call.principal = std::move(principal);
    call.surface = request_.surface;
    call.request_id = request_.request_id;
    call.agent = targets_.agents[place];
    call.tool = request_.tool;
    call.arguments = request_.arguments;
    call.on_behalf_of = request_.on_behalf_of;
    call.after_untrusted_text = request_.after_untrusted_text;
    call.timeout = request_.timeout;
    call.wait_for_agent = request_.wait_for_agent;
    running_[place] = desk_.funnel.run(worker_, std::move(call), [self = shared_from_this(), place](CallResult result) {
      self->on_ended(place, std::move(result));
    });
  }

  void on_ended(std::size_t place, CallResult result) {
    running_.erase(place);
    bool waits = !result.approval_id.empty();
    bool is_error = !waits && result.outcome != Outcome::success;
    bool gateway_stops = result.by_gateway && result.reason == draining;
    hand_out(place, std::move(result));
    if (is_error) ++errors_;
    if (gateway_stops) {
      stop(draining, {});
    } else if (request_.stop_after_errors > 0 && errors_ >= request_.stop_after_errors) {
      stop(stopped, {});
    }
    go_on();
  }

  void hand_out(std::size_t place, CallResult result) {
    ++(result.approval_id.empty() ? count_of(counts_, result.outcome) : counts_.approval_required);
    sink_->result({.place = place, .agent = targets_.agents[place], .call = std::move(result)});
  }

  /// Starts no more calls. `withdraw_because`: not empty to end those that run as well.
  void stop(std::string_view because, std::string_view withdraw_because) {
    if (finished_) return;
    if (stopped_by_.empty()) {
      stopped_by_ = because;
      while (next_ < targets_.agents.size()) {
        ++not_started_;
        hand_out(next_place(), not_started(because));
      }
    }
    if (!withdraw_because.empty()) {
      // A call that ends at once is taken off the list by a later task, never during this walk.
      for (const auto& [place, call] : running_)
        call->cancel(withdraw_because);
    }
    go_on();
  }

  [[nodiscard]] CallResult not_started(std::string_view because) const {
    if (because == past_deadline) {
      return refusal(std::string(because), "not started: the deadline of the whole had passed", Outcome::expired);
    }
    if (because == stopped) {
      return refusal(std::string(because), fmt::format("not started: {} before it did not succeed", errors_),
                     Outcome::cancelled);
    }
    if (because == draining) {
      return refusal(std::string(because), "the gateway is stopping and takes no new calls", Outcome::denied);
    }
    if (no_credential_) return *no_credential_;
    return refusal(std::string(because), "not started: the caller withdrew the request", Outcome::cancelled);
  }

  void finish() {
    if (std::exchange(finished_, true)) return;
    deadline_.cancel();
    FanOutEnd end{.counts = counts_, .not_started = not_started_, .stopped_by = stopped_by_};
    end.duration_us = static_cast<std::uint64_t>(
        std::chrono::duration_cast<std::chrono::microseconds>(desk_.clock.steady_now() - started_).count());
    audit::Record entry = event_of(request_, "fan_out_ended", tier_);
    entry.reason = end.stopped_by;
    entry.duration_us = end.duration_us;
    entry.detail = fmt::format("{} agents: {}", targets_.agents.size(), counts_text(counts_));
    if (not_started_ > 0) entry.detail += fmt::format("; {} of them were not started", not_started_);
    desk_.record(std::move(entry));
    desk_.release(request_.principal.identity());
    sink_->end(end);
    sink_.reset();
  }

  FanOutDesk& desk_;
  net::Worker& worker_;
  const FanOutRequest request_;
  const ResolvedTargets targets_;
  const protocol::Tier tier_;
  std::shared_ptr<FanOutSink> sink_;
  const SteadyTime started_;
  net::Timer deadline_;
  std::size_t next_ = 0;
  std::vector<std::size_t> turns_;  // the places in the order in which they start; empty: as they are
  std::unordered_map<std::size_t, std::shared_ptr<RunningCall>> running_;  // by place
  FanOutCounts counts_;
  std::size_t errors_ = 0;
  std::size_t not_started_ = 0;
  std::string stopped_by_;
  std::optional<CallResult> no_credential_;  // why, when the caller has none any more
  bool finished_ = false;
};

class FanOutsImpl final : public FanOuts {
 public:
  FanOutsImpl(Funnel& funnel, const fleet::Fleet& fleet, audit::Log* log, const Clock& clock, Options options)
      : fleet_(fleet), desk_(funnel, log, clock, options) {}

  std::expected<std::shared_ptr<RunningFanOut>, CallResult> start(net::Worker& worker, FanOutRequest request,
                                                                  std::shared_ptr<FanOutSink> sink) override {
    auto policy = desk_.funnel.policy();
    protocol::Tier tier = policy->tier_of(request.tool, request.arguments);
    auto targets = check(*policy, request, tier);
    if (targets && !desk_.admit(request.principal.identity())) {
      targets = std::unexpected(
          refusal("fan_outs_full", "too many calls for many agents run already; wait for one of them to end"));
    }
    if (!targets) {
      audit::Record entry = event_of(request, "fan_out_refused", tier);
      entry.outcome = Outcome::denied;
      entry.reason = targets.error().reason;
      entry.detail = message_of(targets.error().body);
      desk_.record_refusal(std::move(entry));
      return std::unexpected(std::move(targets).error());
    }
    if (request.deadline.count() == 0) request.deadline = default_deadline;
    bool waits = request.wait_for_agent.count() > 0;
    auto started =
        std::make_shared<FanOut>(desk_, worker, std::move(request), *std::move(targets), tier, std::move(sink));
    if (waits) {
      std::unordered_set<std::string> online;
      fleet::SnapshotPointer snapshot = fleet_.snapshot();
      for (const fleet::AgentPointer& agent : snapshot->agents)
        if (agent->online) online.insert(agent->id);
      started->put_last([&online](const std::string& agent) { return !online.contains(agent); });
    }
    started->begin();
    return started;
  }

  [[nodiscard]] std::expected<FanOutPreview, CallResult> preview(const FanOutRequest& request) override {
    auto policy = desk_.funnel.policy();
    FanOutPreview preview;
    preview.tier = policy->tier_of(request.tool, request.arguments);
    auto targets = check(*policy, request, preview.tier);
    if (!targets) return std::unexpected(std::move(targets).error());
    preview.left_out = targets->left_out;
    preview.agents.reserve(targets->agents.size());
    for (std::string& agent : targets->agents) {
      policy::Question question{request.principal, agent, request.tool, request.arguments, preview.tier};
      FanOutForecast forecast = forecast_of(*policy, question);
      auto status = fleet_.find(agent);
      // Of agents out of the caller's reach it learns nothing that the policy does not say.
      if (policy->reaches(request.principal, agent)) forecast.online = status && status->online;
      forecast.agent = std::move(agent);
      preview.agents.push_back(std::move(forecast));
    }
    return preview;
  }

 private:
  /// What concerns the request as a whole; the gates have their word on each call.
  std::expected<ResolvedTargets, CallResult> check(const policy::Policy& policy, const FanOutRequest& request,
                                                   protocol::Tier tier) const {
    auto refuse = [](std::string reason, std::string_view message) {
      return std::unexpected(refusal(std::move(reason), message));
    };
    policy::Question question{request.principal, {}, request.tool, request.arguments, tier};
    if (policy::Decision role = policy.check_role(question); !role.allowed()) {
      return refuse(std::move(role.reason), role.message);
    }
    if (request.tool.empty()) return refuse("tool_name", "tool: missing or empty; the tool's name without AGENT__");
    if (request.arguments.size() > max_arguments_bytes) {
      return refuse("arguments_too_large",
                    fmt::format("arguments: more than {} bytes for many agents", max_arguments_bytes));
    }
    if (request.concurrency < 1 || request.concurrency > max_concurrency) {
      return refuse("invalid_request", fmt::format("concurrency: must be from 1 to {}", max_concurrency));
    }
    if (request.deadline.count() < 0 || request.deadline > max_deadline) {
      return refuse("invalid_request", "deadline: must be at most a day");
    }
    auto targets = resolve_targets(fleet_, policy, request);
    if (!targets || targets->agents.size() <= max_approvals) return targets;
    if (policy.check_approval(question).verdict != policy::Verdict::ask) return targets;
    return refuse("too_many_approvals",
                  fmt::format("{} is of tier {} and would wait for approval on {} agents; one request may ask for {}",
                              request.tool, protocol::to_string(tier), targets->agents.size(), max_approvals));
  }

  static FanOutForecast forecast_of(const policy::Policy& policy, const policy::Question& question) {
    FanOutForecast forecast;
    for (policy::GateAnswer& answer : policy.explain(question)) {
      bool decides = answer.decision.verdict == policy::Verdict::deny || forecast.verdict == policy::Verdict::allow;
      if (answer.decision.allowed() || !decides) continue;
      forecast.verdict = answer.decision.verdict;
      forecast.reason = std::move(answer.decision.reason);
      forecast.message = std::move(answer.decision.message);
      if (forecast.verdict == policy::Verdict::deny) break;
    }
    return forecast;
  }

  const fleet::Fleet& fleet_;
  FanOutDesk desk_;
};

}  // namespace

std::unique_ptr<FanOuts> FanOuts::create(Funnel& funnel, const fleet::Fleet& fleet, audit::Log* log, const Clock& clock,
                                         Options options) {
  return std::make_unique<FanOutsImpl>(funnel, fleet, log, clock, options);
}

}  // namespace hive::calls
