#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "exec/environment.h"
#include "exec/output.h"
#include "net/runtime/runtime.h"

/// Running commands (DESIGN section 6): argument vectors only, never a shell.
///
/// A command gets its own session. When it ends, by itself or not, whatever is still in that session, or still holds
/// the output pipe, is ended as well. What has made a session of its own and let go of the output has detached itself
/// on purpose (a fault with its own undo timer, a daemon) and lives on; the agent adopts it and reaps it when it ends.
namespace hive::exec {

struct Command {
  std::string path;                      ///< absolute
  std::vector<std::string> argv;         ///< with the program's name first
  std::vector<std::string> environment;  ///< complete, as NAME=value
  std::optional<Credentials> run_as;
  std::chrono::milliseconds timeout = std::chrono::seconds(30);
  size_t max_output_bytes = size_t{1} << 20;
};

/// Why a command ended.
enum class Ending {
  exited,       ///< by itself, with exit_code
  signalled,    ///< by a signal that was not ours
  unknown,      ///< by itself, but how cannot be found out; `problem` says so
  timed_out,    ///< we ended it at its deadline
  cancelled,    ///< we ended it because cancel() was called
  not_started,  ///< it never ran; `problem` says why
};

/// What it took to end a command.
enum class Force {
  none,       ///< it ended by itself
  terminate,  ///< SIGTERM was enough
  kill,       ///< something had to be killed after the grace
  failed,     ///< something is still there: it waits in the kernel, or we may not signal it
};

struct CommandResult {
  Ending ending = Ending::not_started;
  std::optional<int> exit_code;  ///< of the command itself, also when it exited on our SIGTERM
  std::optional<int> signal;     ///< that ended the command itself
  Force force = Force::none;
  unsigned leftovers_killed = 0;  ///< processes that outlived a command which ended by itself
  CapturedOutput output;
  std::chrono::milliseconds duration{0};
  std::string problem;  ///< for not_started and unknown
};

/// A command that was handed to a Runner. Only on its worker.
class RunningCommand {
 public:
  virtual ~RunningCommand() = default;
  /// Ends it: SIGTERM to all of it, a grace, SIGKILL. The result follows as usual. Harmless when it has ended.
  virtual void cancel() = 0;
};

struct RunnerOptions {
  std::chrono::milliseconds terminate_grace = std::chrono::seconds(2);  ///< between SIGTERM and SIGKILL
  std::chrono::milliseconds kill_wait = std::chrono::seconds(2);        ///< how long SIGKILL may take
  /// How long what a command left behind may go on after its exit, so that the end of a pipeline is not lost.
  std::chrono::milliseconds leftover_grace = std::chrono::milliseconds(200);
  std::chrono::milliseconds progress_interval = std::chrono::milliseconds(100);
};

/// Receives what a command prints while it runs: valid UTF-8, at most one piece an interval, bounded.
using OutputCallback = std::move_only_function<void(std::string_view text, std::uint64_t total_bytes)>;
using DoneCallback = std::move_only_function<void(CommandResult result)>;

/// Starts commands and watches over them, any number at once, without a thread a command. Belongs to one worker: every
/// function and callback runs there; only the start of a program uses the pool for blocking work.
/// Makes the process a subreaper and reaps what it adopts, so the program must not start children in other ways on
/// its main thread.
class Runner {
 public:
  static Result<std::unique_ptr<Runner>> create(net::Runtime& runtime, net::Worker& worker, RunnerOptions options = {});
  /// Kills what still runs, and what is just being started as soon as it has started; no callback is called any more.
  ~Runner();
  Runner(const Runner&) = delete;
  Runner& operator=(const Runner&) = delete;

  /// Runs a command. `on_done` is called exactly once, later, never from within run(); `on_output` may be empty and is
  /// not called after `on_done`.
  std::shared_ptr<RunningCommand> run(Command command, OutputCallback on_output, DoneCallback on_done);

  void cancel_all();
  /// Commands whose on_done has not been called yet.
  [[nodiscard]] size_t running() const;

 private:
  struct State;
  explicit Runner(std::shared_ptr<State> state);
  std::shared_ptr<State> state_;
};

}  // namespace hive::exec
