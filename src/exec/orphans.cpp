#include "exec/orphans.h"

#include <array>
#include <string>
#include <string_view>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/strings.h"
#include "exec/process_tree.h"
#include "exec/spawn.h"

namespace hive::exec {

Result<Orphans> Orphans::open() {
  TRY(become_subreaper());
  Orphans orphans;
  std::string path = fmt::format("/proc/self/task/{}/children", ::getpid());
  orphans.list_.reset(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  return orphans;
}

std::vector<pid_t> Orphans::list() const {
  std::vector<pid_t> pids;
  if (!list_) return pids;
  std::string text;
  std::array<char, 1024> buffer{};
  for (;;) {
    ssize_t count = ::pread(list_.get(), buffer.data(), buffer.size(), static_cast<off_t>(text.size()));
    if (count <= 0) break;
    text.append(buffer.data(), static_cast<size_t>(count));
  }
  for (std::string_view word : split(text, ' ')) {
    if (auto number = parse_int64(word)) pids.push_back(static_cast<pid_t>(*number));
  }
  return pids;
}

std::vector<pid_t> Orphans::candidates() const {
  if (has_list()) return list();
  std::vector<pid_t> pids;
  for (const ProcessInfo& child : own_children())
    pids.push_back(child.pid);
  return pids;
}

bool Orphans::reap_one(pid_t pid) {
  siginfo_t status{};
  if (::waitid(P_PID, static_cast<id_t>(pid), &status, WEXITED | WNOHANG) < 0) return true;  // not ours any more
  return status.si_pid != 0;
}

}  // namespace hive::exec
