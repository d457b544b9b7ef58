#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <sys/types.h>

namespace hive::exec {

/// What the kernel says about one process; see proc(5), /proc/PID/stat.
struct ProcessInfo {
  pid_t pid = 0;
  pid_t parent = 0;
  pid_t group = 0;
  pid_t session = 0;
  char state = '?';
  std::uint64_t start_time = 0;  ///< clock ticks after boot; with the pid it names one process for good

  /// Ended, but its parent has not asked for its status yet.
  [[nodiscard]] bool is_zombie() const { return state == 'Z' || state == 'X'; }
};

std::optional<ProcessInfo> read_process(pid_t pid);

/// The direct children of this process, zombies included.
std::vector<ProcessInfo> own_children();

/// All descendants of this process, zombies included. Not atomic: repeat until nothing new turns up.
std::vector<ProcessInfo> own_descendants();

/// Whether the process has the pipe with this inode open. False also when that cannot be found out.
bool holds_pipe(pid_t pid, ino_t pipe_inode);

/// Sends a signal to exactly that process, not to another one that got its number since. False when it is gone or the
/// signal is not permitted.
bool signal_process(const ProcessInfo& process, int signal);

}  // namespace hive::exec
