#pragma once

#include <array>
#include <chrono>
#include <memory>
#include <vector>

#include <boost/asio/posix/stream_descriptor.hpp>
#include <sys/types.h>

#include "base/clock.h"
#include "exec/orphans.h"
#include "exec/process_tree.h"
#include "exec/runner.h"
#include "exec/spawn.h"

/// Private to this room: one running command as a state machine.
namespace hive::exec {

class Process;

/// What all commands of one runner share.
struct ProcessHost {
  ProcessHost(net::Runtime& used_runtime, net::Worker& used_worker, RunnerOptions used_options, Orphans used_orphans)
      : runtime(used_runtime), worker(used_worker), options(used_options), orphans(std::move(used_orphans)) {}
  virtual ~ProcessHost() = default;

  /// The command has ended and its result has been taken; may destroy it.
  virtual void finished(Process& process) = 0;
  /// The pool begins to start a command, and the end of that; in between there may be a child that started() has not
  /// named yet.
  virtual void starts() = 0;
  virtual void start_ended() = 0;
  virtual void started(pid_t pid) = 0;
  virtual void reaped(pid_t pid) = 0;
  /// Whether this is the leader of a command that has not been reaped.
  [[nodiscard]] virtual bool is_command(pid_t pid) const = 0;

  net::Runtime& runtime;
  net::Worker& worker;
  RunnerOptions options;
  Orphans orphans;
  UniqueFd null_fd;
  std::array<char, size_t{64} << 10> buffer{};  // for reading; used within one function only
};

class Process final : public RunningCommand, public std::enable_shared_from_this<Process> {
 public:
  Process(std::shared_ptr<ProcessHost> host, Command command, OutputCallback on_output, DoneCallback on_done);
  ~Process() override;

  void start();
  void cancel() override;
  /// Kills everything at once and calls nobody; for the end of the runner.
  void abandon();

 private:
  enum class Stage {
    starting,     // the pool is loading the program
    running,      //
    draining,     // the command has ended, something of it has not
    sweeping,     // that something has been killed
    terminating,  // SIGTERM was sent to everything
    killing,      // SIGKILL was sent to everything
    ended,        // the result has been handed out
  };

  void on_spawned();
  void watch_output();
  void watch_exit();
  void on_exit();
  // Takes what can be read now, up to a bound that leaves time for others.
  void read_output();
  void close_output();
  void schedule_progress();

  void stop(Ending why);
  void enter(Stage stage, std::chrono::milliseconds at_most);
  void schedule_poll();
  // Looks at where the command stands and takes the next step, if there is one to take.
  void advance();
  [[nodiscard]] bool stage_is_over() const { return std::chrono::steady_clock::now() >= stage_end_; }

  // Reaps what was adopted from the group of the command; true while a member lives. Cheap; sees what the command left
  // when it ended, which is enough after an orderly end.
  bool leftovers_exist();
  // All living members; one that holds the output from another session counts only when seen twice, because a
  // command that is being started holds everything of ours for a moment.
  std::vector<ProcessInfo> find_members();
  void signal_all(int signal);
  void kill_leftover(const ProcessInfo& process);
  [[nodiscard]] bool killed_are_gone() const;
  // SIGKILL to everything, and a bounded wait for the command's own end. Blocks: only where nothing better is possible.
  void kill_now();
  void finish();

  std::shared_ptr<ProcessHost> host_;
  Command command_;
  OutputCallback on_output_;
  DoneCallback on_done_;
  Stage stage_ = Stage::starting;
  SteadyTime started_at_;
  SteadyTime stage_end_;
  CommandResult result_;
  bool stop_wanted_ = false;

  // Written by the pool before it posts on_spawned.
  Result<Spawned> spawned_;
  UniqueFd write_end_;

  pid_t pid_ = -1;
  bool exited_ = false;
  ino_t pipe_inode_ = 0;
  boost::asio::posix::stream_descriptor output_;
  boost::asio::posix::stream_descriptor exit_;
  OutputCapture capture_;
  OutputStream stream_;
  net::Timer deadline_;
  net::Timer poll_;
  net::Timer progress_;
  bool progress_armed_ = false;
  std::vector<ProcessInfo> outsiders_;  // of the last look
  std::vector<ProcessInfo> killed_;     // what the sweep signalled
};

}  // namespace hive::exec
