#pragma once

#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "gateway/audit/log.h"
#include "gateway/calls/funnel.h"
#include "gateway/fleet/fleet.h"

namespace hive::rest::test {

/// A fleet of what a test puts into it.
class FakeFleet final : public fleet::Fleet {
 public:
  std::vector<fleet::AgentStatus> agents;
  std::vector<fleet::AgentTool> all_tools;

  void add(std::shared_ptr<net::ssh::LineChannel>) override {}
  std::vector<fleet::AgentStatus> snapshot() const override { return agents; }
  std::optional<fleet::AgentStatus> find(std::string_view agent) const override {
    for (const fleet::AgentStatus& each : agents) {
      if (each.id == agent) return each;
    }
    return std::nullopt;
  }
  std::vector<fleet::AgentTool> tools() const override { return all_tools; }
  bool has_tool(std::string_view agent, std::string_view tool) const override {
    for (const fleet::AgentTool& each : all_tools) {
      if (each.agent == agent && each.name == tool) return true;
    }
    return false;
  }
  void disconnect(std::string_view, std::string_view) override {}
  std::size_t disconnect_unless(const std::function<bool(const net::ssh::Peer&)>&, std::string_view) override {
    return 0;
  }
  void close(std::string_view) override {}

 private:
  std::uint64_t send(std::string_view, fleet::AgentRequest) override { return 0; }
  void cancel(std::string_view, std::uint64_t, std::string) override {}
};

/// Remembers the calls it is given; a test decides when and how they end.
class FakeFunnel final : public calls::Funnel {
 public:
  struct Running final : calls::RunningCall {
    net::Worker* worker = nullptr;
    calls::Call call;
    std::move_only_function<void(calls::CallResult)> done;
    std::mutex mutex;
    std::string cancelled_because;

    void cancel(std::string_view reason) override {
      std::lock_guard lock(mutex);
      cancelled_because = reason;
    }
    std::string cancellation() {
      std::lock_guard lock(mutex);
      return cancelled_because;
    }
    void progress(std::string params) {
      worker->post([this, params = std::move(params)] { call.on_progress(params); });
    }
    void end(calls::CallResult result) {
      worker->post([this, result = std::move(result)]() mutable {
        done(std::move(result));
        done = nullptr;
      });
    }
  };

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
    }
    if (answer) running->end(answer(running->call));
    return running;
  }
  /// What explain() answers.
  calls::Explanation explanation;

  void explain(net::Worker& worker, calls::Call, std::move_only_function<void(calls::Explanation)> done) override {
    worker.post([this, done = std::move(done)]() mutable { done(explanation); });
  }
  void set_approvals(calls::Approvals*) override {}
  std::shared_ptr<const policy::Policy> policy() const override { return nullptr; }
  void set_policy(std::shared_ptr<const policy::Policy>) override {}
  void drain(net::Task drained) override { drained(); }
  void cancel_all(std::string_view) override {}
  std::size_t in_flight() const override { return 0; }

  std::size_t count() {
    std::lock_guard lock(mutex_);
    return running_.size();
  }
  std::shared_ptr<Running> at(std::size_t index) {
    std::lock_guard lock(mutex_);
    return running_.at(index);
  }

 private:
  std::mutex mutex_;
  std::vector<std::shared_ptr<Running>> running_;  // guarded by mutex_
};

/// Keeps records in memory.
class FakeLog final : public audit::Log {
 public:
  Result<void> append(audit::Record record, std::move_only_function<void(Result<std::uint64_t>)> on_durable) override {
    std::lock_guard lock(mutex_);
    records_.push_back(std::move(record));
    if (on_durable) on_durable(records_.size());
    return {};
  }
  Result<void> flush() override { return {}; }
  Result<void> health() const override { return {}; }
  const audit::RecoveryReport& recovery() const override { return recovery_; }
  std::uint64_t size() const override {
    std::lock_guard lock(mutex_);
    return records_.size();
  }
  std::vector<audit::Record> records() const {
    std::lock_guard lock(mutex_);
    return records_;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<audit::Record> records_;  // guarded by mutex_
  audit::RecoveryReport recovery_;
};

}  // namespace hive::rest::test
