#pragma once

#include <vector>

#include <sys/types.h>

#include "base/result.h"
#include "base/unique_fd.h"

namespace hive::exec {

/// The processes that this process adopted as a subreaper: descendants whose own parent ended. The kernel hands them to
/// the main thread, while commands are started by pool threads, so the list of the main thread holds orphans only.
class Orphans {
 public:
  static Result<Orphans> open();

  /// Ids of the adopted processes, zombies included. One system call; empty when the kernel keeps no such list
  /// (built without CONFIG_PROC_CHILDREN), see has_list().
  [[nodiscard]] std::vector<pid_t> list() const;
  [[nodiscard]] bool has_list() const { return list_.is_open(); }

  /// Takes the status of every adopted process that has ended, except of the pids for which `is_ours` is true.
  /// Returns how many adopted processes still live.
  template <class Predicate>
  size_t reap(Predicate is_ours) const {
    size_t living = 0;
    for (pid_t pid : candidates()) {
      if (!is_ours(pid) && !reap_one(pid)) ++living;
    }
    return living;
  }

 private:
  [[nodiscard]] std::vector<pid_t> candidates() const;
  // False while the process lives.
  static bool reap_one(pid_t pid);

  UniqueFd list_;
};

}  // namespace hive::exec
