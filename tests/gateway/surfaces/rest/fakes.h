#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "gateway/audit/log.h"
#include "gateway/calls/approvals.h"
#include "gateway/calls/funnel.h"
#include "gateway/fleet/fleet.h"
#include "gateway/surfaces/rest/configuration_store.h"
#include "gateway/upstreams/upstreams.h"

namespace hive::rest::test {

/// One tool of one agent.
struct AgentTool {
  std::string agent;
  std::string name;  ///< without prefix
  std::string description;
  std::string raw;  ///< the whole object, name not yet prefixed
};

/// A fleet of what a test puts into it.
class FakeFleet final : public fleet::Fleet {
 public:
  std::vector<fleet::AgentStatus> agents;
  std::vector<AgentTool> all_tools;
  /// What an agent says at once to what is sent to it; nothing, when not set.
  std::function<fleet::AgentReply(std::string_view agent, const fleet::AgentRequest&)> reply;

  void add(std::shared_ptr<net::ssh::LineChannel>) override {}
  fleet::SnapshotPointer snapshot() const override {
    std::map<std::string, fleet::AgentStatus> by_id;
    for (const fleet::AgentStatus& each : agents)
      by_id.emplace(each.id, each);
    std::map<std::string, fleet::ToolList> tools;
    for (const AgentTool& each : all_tools)
      tools[each.agent].push_back({each.name, each.description, each.raw});
    // Another version for another content, whoever changed it.
    std::string content;
    for (auto& [id, list] : tools) {
      auto [found, is_new] = by_id.try_emplace(id);
      fleet::AgentStatus& agent = found->second;
      agent.id = id;
      if (is_new) agent.online = true;
      if (!agent.online) continue;
      for (const fleet::Tool& tool : list)
        content += tool.raw;
      agent.tools = std::make_shared<const fleet::ToolList>(std::move(list));
    }
    fleet::FleetSnapshot made{.version = 0, .agents = {}};
    for (auto& [id, agent] : by_id) {
      content += fmt::format("{} {} {}\n", id, agent.online, agent.connected_at.time_since_epoch().count());
      made.agents.push_back(std::make_shared<const fleet::AgentStatus>(std::move(agent)));
    }
    made.version = std::hash<std::string>()(content);
    return std::make_shared<const fleet::FleetSnapshot>(std::move(made));
  }
  fleet::AgentPointer find(std::string_view agent) const override {
    for (const fleet::AgentStatus& each : agents) {
      if (each.id == agent) return snapshot()->find(agent);
    }
    return nullptr;
  }
  std::uint64_t wait_online(std::string_view, net::Worker& worker, std::chrono::milliseconds,
                            fleet::WaitingRoom::Done done) override {
    worker.post([done = std::move(done)]() mutable { done(fleet::WaitEnd::timed_out); });
    return 1;
  }
  void stop_waiting(std::uint64_t) override {}
  void set_enrolled(std::span<const std::string>) override {}
  void forget(std::string_view) override {}
  void disconnect(std::string_view, std::string_view) override {}
  std::size_t disconnect_unless(const std::function<bool(const net::ssh::Peer&)>&, std::string_view) override {
    return 0;
  }
  void close(std::string_view) override {}

 private:
  std::uint64_t send(std::string_view agent, fleet::AgentRequest request) override {
    if (reply) request.done(reply(agent, request));
    return 0;
  }
  void cancel(std::string_view, std::uint64_t, std::string) override {}
};

/// Upstream servers of what a test puts here.
class FakeUpstreams final : public upstreams::Upstreams {
 public:
  std::vector<upstreams::UpstreamStatus> all;
  std::vector<upstreams::HeldBackTool> held;
  upstreams::Listing offered;
  /// What accepting says.
  std::function<Result<void>(const std::string& upstream, const std::string& tool, const std::string& sha256)> verdict =
      [](const std::string&, const std::string&, const std::string&) -> Result<void> { return {}; };

  void apply(const config::GatewayConfig&) override {}
  std::vector<upstreams::UpstreamStatus> statuses() const override { return all; }
  std::shared_ptr<const upstreams::Listing> listing() const override {
    return std::make_shared<const upstreams::Listing>(offered);
  }
  std::optional<upstreams::Item> find_tool(std::string_view public_name) const override {
    for (const upstreams::Item& item : offered.tools) {
      if (item.public_name == public_name) return item;
    }
    return std::nullopt;
  }
  std::optional<upstreams::Item> find_prompt(std::string_view) const override { return std::nullopt; }
  std::optional<upstreams::Item> find_resource(std::string_view) const override { return std::nullopt; }
  bool has(std::string_view upstream) const override {
    for (const upstreams::UpstreamStatus& each : all) {
      if (each.name == upstream) return true;
    }
    return false;
  }
  std::vector<upstreams::HeldBackTool> held_back() const override { return held; }
  void accept(std::string upstream, std::string tool, std::string sha256,
              std::move_only_function<void(Result<void>)> done) override {
    done(verdict(upstream, tool, sha256));
  }
  std::shared_ptr<void> listen(Listener) override { return nullptr; }
  std::shared_ptr<void> watch_resource(std::string_view) override { return nullptr; }
  void forget_caller(std::string_view) override {}
  void close() override {}

 private:
  std::uint64_t send(std::string_view, upstreams::Request request) override {
    request.done(upstreams::Reply());
    return 0;
  }
  void cancel(std::uint64_t, std::string) override {}
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
  /// What policy() says.
  std::shared_ptr<const policy::Policy> current_policy;
  /// What explain() says.
  calls::Explanation explanation;

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
  void explain(net::Worker& worker, calls::Call call, std::move_only_function<void(calls::Explanation)> done) override {
    {
      std::lock_guard lock(mutex_);
      explained_.push_back(std::move(call));
    }
    worker.post([this, done = std::move(done)]() mutable { done(explanation); });
  }
  void set_approvals(calls::Approvals*) override {}
  void set_refresh(Refresh /*refresh*/) override {}
  [[nodiscard]] std::expected<policy::Principal, calls::CallResult> refresh(
      const policy::Principal& earlier) const override {
    return earlier;
  }
  void set_upstreams(upstreams::Upstreams*) override {}
  void set_policy(std::shared_ptr<const policy::Policy>) override {}
  std::shared_ptr<const policy::Policy> policy() const override { return current_policy; }
  void drain(net::Task drained) override { drained(); }
  void cancel_all(std::string_view) override {}
  std::size_t in_flight() const override { return 0; }

  std::size_t count() {
    std::lock_guard lock(mutex_);
    return running_.size();
  }
  std::vector<calls::Call> explained() {
    std::lock_guard lock(mutex_);
    return std::exchange(explained_, {});
  }
  std::shared_ptr<Running> at(std::size_t index) {
    std::lock_guard lock(mutex_);
    return running_.at(index);
  }

 private:
  std::mutex mutex_;
  std::vector<std::shared_ptr<Running>> running_;  // guarded by mutex_
  std::vector<calls::Call> explained_;             // guarded by mutex_
};

/// A desk with the requests that a test puts on it. Shows each viewer those that `visible` admits.
class FakeApprovals final : public calls::Approvals {
 public:
  std::vector<calls::Approval> kept;
  std::function<bool(const policy::Principal& viewer, const calls::Approval& approval)> visible =
      [](const policy::Principal&, const calls::Approval&) { return true; };
  std::function<Result<calls::Approval>(const Word& word)> verdict = [](const Word&) -> Result<calls::Approval> {
    return fail(ErrorCode::not_found, "no such request");
  };
  std::function<Result<std::optional<calls::CallResult>>()> ending = []() -> Result<std::optional<calls::CallResult>> {
    return std::nullopt;
  };
  std::vector<Word> words;
  std::chrono::milliseconds waited{0};

  std::vector<Snapshot> list(const policy::Principal& viewer, bool only_pending) const override {
    std::vector<Snapshot> shown;
    for (const calls::Approval& each : kept) {
      if (only_pending && each.status != calls::ApprovalStatus::pending) continue;
      if (visible(viewer, each)) shown.push_back(std::make_shared<const calls::Approval>(each));
    }
    return shown;
  }
  Snapshot find(const policy::Principal& viewer, std::string_view id) const override {
    for (const calls::Approval& each : kept) {
      if (each.id == id && visible(viewer, each)) return std::make_shared<const calls::Approval>(each);
    }
    return nullptr;
  }
  void decide(Word word, std::move_only_function<void(Result<Snapshot>)> done) override {
    words.push_back(word);
    Result<calls::Approval> said = verdict(word);
    if (!said) return done(std::unexpected(said.error()));
    done(std::make_shared<const calls::Approval>(*said));
  }
  void result(net::Worker& worker, const policy::Principal&, std::string, std::chrono::milliseconds patience,
              std::move_only_function<void(Result<std::optional<calls::CallResult>>)> done) override {
    waited = patience;
    worker.post([this, done = std::move(done)]() mutable { done(ending()); });
  }
  void sweep() override {}
  void close() override {}

 private:
  void ask(calls::Approval request, std::move_only_function<void(Result<Snapshot>)> done) override {
    request.id = std::string(32, 'a');
    kept.push_back(request);
    done(std::make_shared<const calls::Approval>(std::move(request)));
  }
  std::expected<std::string, std::string> redeem(std::string_view, const policy::ApprovalSubject&) override {
    return std::unexpected("approval_unknown");
  }
};

/// A configuration file in memory.
class FakeConfigurationStore final : public ConfigurationStore {
 public:
  std::string text = "{\n  \"listen_addr\": \":2222\"\n}\n";
  std::function<Result<Change>(const std::string& text)> change = [](const std::string& given) -> Result<Change> {
    return Change{{"rate_limit_per_minute"}, {}, given};
  };
  std::string replaced;
  std::string replaced_by;

  Result<std::string> redacted() override { return text; }
  Result<Change> replace(std::string given, const policy::Principal& by, const std::string&) override {
    replaced = given;
    replaced_by = by.name;
    return change(given);
  }
};

/// Keeps records in memory.
class FakeLog final : public audit::Log {
 public:
  Result<void> append(audit::Record record, std::move_only_function<void(Result<std::uint64_t>)> on_durable) override {
    std::uint64_t size = 0;
    {
      std::lock_guard lock(mutex_);
      records_.push_back(std::move(record));
      size = records_.size();
    }
    // Outside of the lock, because what follows may write the next entry.
    if (on_durable && is_failing_) {
      on_durable(fail(ErrorCode::io, "no space left on device"));
    } else if (on_durable) {
      on_durable(size);
    }
    return {};
  }
  /// The disk takes nothing any more, which nobody has noticed yet.
  void set_failing(bool failing) { is_failing_ = failing; }
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
  std::atomic<bool> is_failing_ = false;
  audit::RecoveryReport recovery_;
};

}  // namespace hive::rest::test
