#pragma once

#include <algorithm>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "gateway/surfaces/mcp/core.h"
#include "gateway/surfaces/rest/fakes.h"

namespace hive::mcp_surface::test {

using rest::test::FakeApprovals;
using rest::test::FakeFleet;
using rest::test::FakeLog;

constexpr std::chrono::seconds patience{10};

/// Keeps what is sent for a request.
class FakeReply final : public Reply {
 public:
  void send(std::string message) override {
    std::lock_guard lock(mutex_);
    if (finished_) sent_after_the_end_ = true;
    sent_.push_back(std::move(message));
    changed_.notify_all();
  }
  void finish(std::string message, unsigned http_status) override {
    std::lock_guard lock(mutex_);
    if (finished_) sent_after_the_end_ = true;
    finished_ = std::move(message);
    status_ = http_status;
    changed_.notify_all();
  }

  /// The answer, when it has come; "" when it does not.
  std::string answer() {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, patience, [&] { return finished_.has_value(); });
    return finished_.value_or("");
  }
  unsigned status() {
    (void)answer();
    std::lock_guard lock(mutex_);
    return status_;
  }
  bool has_answer() {
    std::lock_guard lock(mutex_);
    return finished_.has_value();
  }
  bool anything_after_the_end() {
    std::lock_guard lock(mutex_);
    return sent_after_the_end_;
  }
  /// Waits for so many messages before the answer.
  std::vector<std::string> sent(std::size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, patience, [&] { return sent_.size() >= count; });
    return sent_;
  }
  std::vector<std::string> sent_so_far() {
    std::lock_guard lock(mutex_);
    return sent_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> sent_;
  std::optional<std::string> finished_;
  unsigned status_ = 0;
  bool sent_after_the_end_ = false;
};

/// Remembers the calls that reach it; a test decides when and how they end.
class FakeFunnel final : public calls::Funnel {
 public:
  struct Running final : calls::RunningCall {
    net::Worker* worker = nullptr;
    calls::Call call;
    std::move_only_function<void(calls::CallResult)> done;
    std::mutex mutex;
    std::condition_variable changed;
    std::string cancelled_because;

    void cancel(std::string_view reason) override {
      std::lock_guard lock(mutex);
      cancelled_because = reason;
      changed.notify_all();
    }
    /// Waits for the withdrawal; "" when there is none.
    std::string cancellation() {
      std::unique_lock lock(mutex);
      changed.wait_for(lock, patience, [&] { return !cancelled_because.empty(); });
      return cancelled_because;
    }
    void progress(std::string params) {
      worker->post([this, params = std::move(params)] { call.on_progress(params); });
    }
    void end(calls::CallResult result) {
      worker->post([this, result = std::move(result)]() mutable {
        auto ending = std::exchange(done, nullptr);
        ending(std::move(result));
        call = {};
      });
    }
  };

  std::shared_ptr<const policy::Policy> current_policy;
  /// Ends every call at once, when set.
  std::function<calls::CallResult(const calls::Call&)> answer;

  std::shared_ptr<calls::RunningCall> run(net::Worker& worker, calls::Call call,
                                          std::move_only_function<void(calls::CallResult)> done) override {
    auto running = std::make_shared<Running>();
    running->worker = &worker;
    running->call = std::move(call);
    running->done = std::move(done);
    {
      std::lock_guard lock(mutex_);
      running_.push_back(running);
      changed_.notify_all();
    }
    if (answer) running->end(answer(running->call));
    return running;
  }
  void explain(net::Worker&, calls::Call, std::move_only_function<void(calls::Explanation)>) override {}
  void set_approvals(calls::Approvals*) override {}
  void set_refresh(Refresh /*refresh*/) override {}
  [[nodiscard]] std::expected<policy::Principal, calls::CallResult> refresh(
      const policy::Principal& earlier) const override {
    return earlier;
  }
  void set_upstreams(upstreams::Upstreams*) override {}
  void set_policy(std::shared_ptr<const policy::Policy> policy) override { current_policy = std::move(policy); }
  std::shared_ptr<const policy::Policy> policy() const override { return current_policy; }
  void drain(net::Task drained) override { drained(); }
  void cancel_all(std::string_view) override {}
  std::size_t in_flight() const override { return 0; }

  std::size_t count() {
    std::lock_guard lock(mutex_);
    return running_.size();
  }
  /// Waits for the call with this number.
  std::shared_ptr<Running> at(std::size_t index) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, patience, [&] { return running_.size() > index; });
    return running_.at(index);
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::shared_ptr<Running>> running_;  // guarded by mutex_
};

/// Servers behind the gateway that offer what a test puts into them.
class FakeUpstreams final : public upstreams::Upstreams {
 public:
  std::vector<upstreams::UpstreamStatus> all;
  upstreams::Listing offered;
  std::set<std::string> watchable;

  void add(const std::string& name, const std::string& prefix, const std::string& revision) {
    upstreams::UpstreamStatus status;
    status.name = name;
    status.prefix = prefix;
    status.state = "connected";
    status.revision = revision;
    all.push_back(std::move(status));
  }
  static upstreams::Item item(std::string upstream, std::string name, std::string public_name, std::string raw) {
    return {std::move(upstream), std::move(name), std::move(public_name), std::move(raw)};
  }
  void tell(const upstreams::Change& change) {
    Listener listener;
    {
      std::lock_guard lock(mutex_);
      listener = listener_;
    }
    if (listener) listener(change);
  }
  std::vector<std::string> forgotten() {
    std::lock_guard lock(mutex_);
    return forgotten_;
  }
  std::size_t watches() const { return static_cast<std::size_t>(watches_->load()); }

  void apply(const config::GatewayConfig&) override {}
  std::vector<upstreams::UpstreamStatus> statuses() const override { return all; }
  std::shared_ptr<const upstreams::Listing> listing() const override {
    std::lock_guard lock(mutex_);
    return std::make_shared<const upstreams::Listing>(offered);
  }
  std::optional<upstreams::Item> find_tool(std::string_view name) const override { return find(offered.tools, name); }
  std::optional<upstreams::Item> find_prompt(std::string_view name) const override {
    return find(offered.prompts, name);
  }
  std::optional<upstreams::Item> find_resource(std::string_view uri) const override {
    return find(offered.resources, uri);
  }
  bool has(std::string_view name) const override {
    return std::ranges::find(all, name, &upstreams::UpstreamStatus::name) != all.end();
  }
  std::vector<upstreams::HeldBackTool> held_back() const override { return {}; }
  void accept(std::string, std::string, std::string, std::move_only_function<void(Result<void>)> done) override {
    done({});
  }
  std::shared_ptr<void> listen(Listener listener) override {
    std::lock_guard lock(mutex_);
    listener_ = std::move(listener);
    return std::make_shared<int>(0);
  }
  std::shared_ptr<void> watch_resource(std::string_view uri) override {
    if (!watchable.contains(std::string(uri))) return nullptr;
    ++*watches_;
    return std::shared_ptr<void>(watches_.get(), [count = watches_](void*) { --*count; });
  }
  void forget_caller(std::string_view key) override {
    std::lock_guard lock(mutex_);
    forgotten_.emplace_back(key);
  }
  void close() override {}
  template <class Change>
  void change(Change&& what) {
    std::lock_guard lock(mutex_);
    what(offered);
  }

 private:
  static std::optional<upstreams::Item> find(const std::vector<upstreams::Item>& items, std::string_view name) {
    auto found = std::ranges::find(items, name, &upstreams::Item::public_name);
    return found == items.end() ? std::nullopt : std::optional(*found);
  }
  std::uint64_t send(std::string_view, upstreams::Request) override { return 0; }
  void cancel(std::uint64_t, std::string) override {}

  mutable std::mutex mutex_;
  Listener listener_;
  std::vector<std::string> forgotten_;
  std::shared_ptr<std::atomic<int>> watches_ = std::make_shared<std::atomic<int>>(0);
};

}  // namespace hive::mcp_surface::test
