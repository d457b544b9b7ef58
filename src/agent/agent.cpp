#include "agent/agent.h"

#include <unordered_map>
#include <utility>

#include "agent/session.h"
#include "agent/tools/metrics_sampler.h"
#include "base/log.h"

namespace hive::agent {

namespace {

// SIGTERM and SIGKILL of a command may take this long together, see exec::RunnerOptions.
constexpr std::chrono::milliseconds stop_limit{4500};
constexpr std::chrono::milliseconds stop_poll{20};

// Reads take microseconds unless a file system hangs. Then more threads would only hang as well.
constexpr size_t read_threads = 2;

}  // namespace

struct Agent::State final : SessionHost, std::enable_shared_from_this<Agent::State> {
  State(net::Runtime& used_runtime, net::Worker& used_worker, config::AgentConfig used_config,
        exec::Allowlist used_allowlist, std::unique_ptr<exec::Runner> used_runner,
        std::unique_ptr<MetricsSampler> used_metrics)
      : config(std::move(used_config)),
        allowlist(std::move(used_allowlist)),
        runner(std::move(used_runner)),
        metrics(std::move(used_metrics)),
        reads(read_threads, config.max_concurrent_calls),
        tool_services{.runtime = used_runtime,
                      .worker = used_worker,
                      .config = config,
                      .allowlist = allowlist,
                      .runner = *runner,
                      .metrics = *metrics,
                      .reads = reads} {}

  ToolServices& services() override { return tool_services; }

  std::string_view begin_call() override {
    if (stopping) return "stopping";
    if (calls >= config.max_concurrent_calls) return "busy";
    ++calls;
    return {};
  }

  void end_call() override { --calls; }

  void closed(Session& session) override { sessions.erase(&session); }

  void finish_stop_when_idle(std::chrono::steady_clock::time_point limit) {
    bool idle = calls == 0;
    for (const auto& [pointer, session] : sessions)
      idle = idle && session->is_idle();
    if (!idle && std::chrono::steady_clock::now() < limit) {
      stop_timer = tool_services.worker.schedule(stop_poll, [this, limit] { finish_stop_when_idle(limit); });
      return;
    }
    if (!idle) log::warning("stopping although calls have not ended", {{"calls", calls}});
    auto open = sessions;
    for (const auto& [pointer, session] : open)
      session->close("the agent is stopping");
    if (auto done = std::exchange(on_stopped, nullptr)) done();
  }

  config::AgentConfig config;
  exec::Allowlist allowlist;
  std::unique_ptr<exec::Runner> runner;
  std::unique_ptr<MetricsSampler> metrics;
  ReadPool reads;
  ToolServices tool_services;
  std::unordered_map<Session*, std::shared_ptr<Session>> sessions;
  size_t calls = 0;
  bool stopping = false;
  net::Timer stop_timer;
  std::move_only_function<void()> on_stopped;
};

Result<std::unique_ptr<Agent>> Agent::create(net::Runtime& runtime, net::Worker& worker, config::AgentConfig config) {
  exec::Allowlist allowlist = TRY_CONTEXT(config.source_path, exec::Allowlist::compile(config.allowed_commands));
  for (const std::string& warning : allowlist.warnings())
    log::warning(warning, {{"file", config.source_path}});
  std::unique_ptr<exec::Runner> runner = TRY(exec::Runner::create(runtime, worker));
  std::unique_ptr<MetricsSampler> metrics = TRY(MetricsSampler::create());
  auto state = std::make_shared<State>(runtime, worker, std::move(config), std::move(allowlist), std::move(runner),
                                       std::move(metrics));
  return std::unique_ptr<Agent>(new Agent(std::move(state)));
}

Agent::Agent(std::shared_ptr<State> state) : state_(std::move(state)) {}

Agent::~Agent() {
  state_->stop_timer.cancel();
  for (const auto& [pointer, session] : state_->sessions)
    session->let_go();
  state_->sessions.clear();
  state_->reads.finish();
  // Kills what still runs, while the services of the tools are there.
  state_->runner.reset();
}

void Agent::serve(std::shared_ptr<net::ssh::LineChannel> channel, std::move_only_function<void()> on_useful_exchange) {
  auto session = std::make_shared<Session>(state_, channel, std::move(on_useful_exchange));
  state_->sessions.emplace(session.get(), session);
  channel->set_handler(session);
  if (state_->stopping) channel->close("the agent is stopping");
}

void Agent::stop(std::move_only_function<void()> done) {
  if (state_->stopping) return;
  state_->stopping = true;
  state_->on_stopped = std::move(done);
  auto open = state_->sessions;
  for (const auto& [pointer, session] : open)
    session->cancel_all();
  state_->finish_stop_when_idle(std::chrono::steady_clock::now() + stop_limit);
}

size_t Agent::running_calls() const {
  return state_->calls;
}

const exec::Allowlist& Agent::allowlist() const {
  return state_->allowlist;
}

}  // namespace hive::agent
