#include "exec/runner.h"

#include <unordered_map>
#include <unordered_set>
#include <utility>

#include <fcntl.h>

#include "exec/process.h"

namespace hive::exec {

namespace {

// How long a zombie that we adopted may stand in the process table.
constexpr std::chrono::milliseconds reap_interval{500};

}  // namespace

struct Runner::State : ProcessHost, std::enable_shared_from_this<Runner::State> {
  State(net::Runtime& used_runtime, net::Worker& used_worker, RunnerOptions used_options, Orphans used_orphans)
      : ProcessHost(used_runtime, used_worker, used_options, std::move(used_orphans)) {}

  void finished(Process& process) override {
    processes.erase(&process);
    reap_orphans();
  }

  void starts() override { ++starting; }
  void start_ended() override { --starting; }
  void started(pid_t pid) override { pids.insert(pid); }
  void reaped(pid_t pid) override { pids.erase(pid); }
  [[nodiscard]] bool is_command(pid_t pid) const override { return pids.contains(pid); }

  void reap_orphans() {
    if (starting > 0 && !orphans.has_list()) {
      // Without that list a command that is just being started cannot be told from an orphan.
      arm_reaper();
      return;
    }
    size_t living = orphans.reap([this](pid_t pid) { return is_command(pid); });
    if (living == 0 && processes.empty()) {
      reap_timer.cancel();
      reap_armed = false;
    } else {
      arm_reaper();
    }
  }

  void arm_reaper() {
    if (reap_armed) return;
    reap_armed = true;
    reap_timer = worker.schedule(reap_interval, [weak = weak_from_this()] {
      auto self = weak.lock();
      if (self == nullptr) return;
      self->reap_armed = false;
      self->reap_orphans();
    });
  }

  std::unordered_map<Process*, std::shared_ptr<Process>> processes;
  std::unordered_set<pid_t> pids;  // of commands that were started and not reaped
  size_t starting = 0;             // commands that the pool is at
  net::Timer reap_timer;
  bool reap_armed = false;
};

Result<std::unique_ptr<Runner>> Runner::create(net::Runtime& runtime, net::Worker& worker, RunnerOptions options) {
  Orphans orphans = TRY(Orphans::open());
  UniqueFd null_fd(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (!null_fd) return std::unexpected(system_error(errno, "open /dev/null"));
  auto state = std::make_shared<State>(runtime, worker, options, std::move(orphans));
  state->null_fd = TRY(above_standard_streams(std::move(null_fd)));
  return std::unique_ptr<Runner>(new Runner(std::move(state)));
}

Runner::Runner(std::shared_ptr<State> state) : state_(std::move(state)) {}

Runner::~Runner() {
  state_->reap_timer.cancel();
  auto processes = std::exchange(state_->processes, {});
  for (auto& [pointer, process] : processes)
    process->abandon();
}

std::shared_ptr<RunningCommand> Runner::run(Command command, OutputCallback on_output, DoneCallback on_done) {
  auto process = std::make_shared<Process>(state_, std::move(command), std::move(on_output), std::move(on_done));
  state_->processes.emplace(process.get(), process);
  process->start();
  state_->arm_reaper();
  return process;
}

void Runner::cancel_all() {
  auto processes = state_->processes;
  for (auto& [pointer, process] : processes)
    process->cancel();
}

size_t Runner::running() const {
  return state_->processes.size();
}

}  // namespace hive::exec
