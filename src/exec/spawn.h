#pragma once

#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "base/result.h"
#include "base/unique_fd.h"
#include "exec/environment.h"

namespace hive::exec {

/// What to start and what it may have.
struct SpawnRequest {
  std::string path;                      ///< absolute
  std::vector<std::string> argv;         ///< with the program's name first
  std::vector<std::string> environment;  ///< complete
  std::optional<Credentials> run_as;
  int output_fd = -1;  ///< becomes standard output, and standard error unless that has its own; above 2
  int error_fd = -1;   ///< becomes standard error; above 2, or -1
  int null_fd = -1;    ///< becomes standard input; above 2
};

/// A started child. Its process id is also the id of its session and of its process group.
struct Spawned {
  pid_t pid = -1;
  UniqueFd pidfd;
};

/// Starts a program in a new session, in "/", with no other descriptor than those named, default signal handlers
/// and an empty signal mask; no shell is ever involved. Returns when the program has been loaded, so it may block on a
/// slow disk: not on a worker. The child receives SIGTERM should the calling thread end before it.
/// Failure says in words why the program cannot be started.
Result<Spawned> spawn(const SpawnRequest& request);

/// Makes this process the new parent of descendants whose own parent has ended, so that none gets out of sight.
/// See prctl(2), PR_SET_CHILD_SUBREAPER.
Result<void> become_subreaper();

/// Moves a descriptor above standard error if it is not there yet, keeping it close-on-exec.
Result<UniqueFd> above_standard_streams(UniqueFd fd);

}  // namespace hive::exec
