#include "exec/process_tree.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/strings.h"
#include "base/unique_fd.h"

namespace hive::exec {

namespace {

struct CloseDir {
  void operator()(DIR* folder) const { ::closedir(folder); }
};
using Folder = std::unique_ptr<DIR, CloseDir>;

std::string read_all(const std::string& path) {
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::string text;
  if (!fd) return text;
  std::array<char, 4096> buffer{};
  for (;;) {
    ssize_t count = ::read(fd.get(), buffer.data(), buffer.size());
    if (count <= 0) return text;
    text.append(buffer.data(), static_cast<size_t>(count));
  }
}

std::vector<pid_t> numbers_in(std::string_view text) {
  std::vector<pid_t> numbers;
  for (std::string_view word : split(text, ' ')) {
    if (auto number = parse_int64(trim(word))) numbers.push_back(static_cast<pid_t>(*number));
  }
  return numbers;
}

std::vector<pid_t> entries_of(const std::string& path) {
  std::vector<pid_t> numbers;
  Folder folder(::opendir(path.c_str()));
  if (!folder) return numbers;
  while (const dirent* entry = ::readdir(folder.get())) {
    if (auto number = parse_int64(entry->d_name)) numbers.push_back(static_cast<pid_t>(*number));
  }
  return numbers;
}

bool kernel_lists_children() {
  static const bool listed = ::access("/proc/thread-self/children", R_OK) == 0;
  return listed;
}

// Children are listed by the thread that made or adopted them.
void append_children(pid_t pid, std::vector<ProcessInfo>& children) {
  for (pid_t thread : entries_of(fmt::format("/proc/{}/task", pid))) {
    for (pid_t child : numbers_in(read_all(fmt::format("/proc/{}/task/{}/children", pid, thread)))) {
      if (auto info = read_process(child); info && info->parent == pid) children.push_back(*info);
    }
  }
}

std::vector<ProcessInfo> all_processes() {
  std::vector<ProcessInfo> processes;
  for (pid_t pid : entries_of("/proc")) {
    if (auto info = read_process(pid)) processes.push_back(*info);
  }
  return processes;
}

}  // namespace

std::optional<ProcessInfo> read_process(pid_t pid) {
  std::string text = read_all(fmt::format("/proc/{}/stat", pid));
  // The name stands in parentheses and may itself hold any character; what follows the last one are numbers.
  size_t name_end = text.rfind(')');
  if (name_end == std::string::npos || name_end + 2 >= text.size()) return std::nullopt;
  std::vector<std::string_view> fields = split(std::string_view(text).substr(name_end + 2), ' ');
  if (fields.size() < 20 || fields[0].size() != 1) return std::nullopt;
  auto number = [&](size_t index) { return parse_int64(fields[index]).value_or(-1); };
  return ProcessInfo{.pid = pid,
                     .parent = static_cast<pid_t>(number(1)),
                     .group = static_cast<pid_t>(number(2)),
                     .session = static_cast<pid_t>(number(3)),
                     .state = fields[0][0],
                     .start_time = static_cast<std::uint64_t>(number(19))};
}

std::vector<ProcessInfo> own_children() {
  std::vector<ProcessInfo> children;
  if (kernel_lists_children()) {
    append_children(::getpid(), children);
    return children;
  }
  for (const ProcessInfo& process : all_processes()) {
    if (process.parent == ::getpid()) children.push_back(process);
  }
  return children;
}

std::vector<ProcessInfo> own_descendants() {
  std::vector<ProcessInfo> found = own_children();
  if (kernel_lists_children()) {
    // A tree that grows while it is read must not keep us here.
    constexpr size_t enough = 20'000;
    for (size_t i = 0; i < found.size() && found.size() < enough; ++i)
      append_children(found[i].pid, found);
    return found;
  }
  std::vector<ProcessInfo> everybody = all_processes();
  std::unordered_multimap<pid_t, const ProcessInfo*> by_parent;
  for (const ProcessInfo& process : everybody)
    by_parent.emplace(process.parent, &process);
  found.clear();
  std::vector<pid_t> open = {::getpid()};
  while (!open.empty()) {
    auto [begin, end] = by_parent.equal_range(open.back());
    open.pop_back();
    for (; begin != end; ++begin) {
      found.push_back(*begin->second);
      open.push_back(begin->second->pid);
    }
  }
  return found;
}

bool holds_pipe(pid_t pid, ino_t pipe_inode) {
  std::string path = fmt::format("/proc/{}/fd", pid);
  UniqueFd folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder) return false;
  std::string wanted = fmt::format("pipe:[{}]", pipe_inode);
  for (pid_t fd : entries_of(path)) {
    std::array<char, 64> target{};
    ssize_t length = ::readlinkat(folder.get(), std::to_string(fd).c_str(), target.data(), target.size());
    if (length > 0 && std::string_view(target.data(), static_cast<size_t>(length)) == wanted) return true;
  }
  return false;
}

bool signal_process(const ProcessInfo& process, int signal) {
  UniqueFd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, process.pid, 0)));
  if (!pidfd) return false;
  auto now = read_process(process.pid);
  if (!now || now->start_time != process.start_time) return false;
  return ::syscall(SYS_pidfd_send_signal, pidfd.get(), signal, nullptr, 0) == 0;
}

}  // namespace hive::exec
