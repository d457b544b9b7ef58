// The yardstick for run_command: nothing but fork, exec, reading the output to its end and waiting, from as many
// threads as there are callers. Usage: fork_exec CALLERS SECONDS PROGRAM [ARGUMENT...] Prints: runs a second, and the
// median and 99th percentile of one run in microseconds.

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <string_view>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

using SteadyClock = std::chrono::steady_clock;

/// Runs the program once; false when it could not be started or failed.
bool run_once(char* const* argv, int dev_null) {
  std::array<int, 2> pipe_ends{};
  if (pipe2(pipe_ends.data(), O_CLOEXEC) != 0) return false;
  const pid_t pid = fork();
  if (pid == 0) {
    dup2(dev_null, STDIN_FILENO);
    dup2(pipe_ends[1], STDOUT_FILENO);
    dup2(pipe_ends[1], STDERR_FILENO);
    execvp(argv[0], argv);
    _exit(127);
  }
  close(pipe_ends[1]);
  std::array<char, 4096> buffer{};
  if (pid > 0) {
    while (read(pipe_ends[0], buffer.data(), buffer.size()) > 0) {
    }
  }
  close(pipe_ends[0]);
  int status = 0;
  return pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

bool parse_number(std::string_view text, int& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end == text.data() + text.size() && value > 0;
}

}  // namespace

int main(int argc, char** argv) {
  int callers = 0;
  int seconds = 0;
  if (argc < 4 || !parse_number(argv[1], callers) || !parse_number(argv[2], seconds)) {
    std::fprintf(stderr, "usage: %s CALLERS SECONDS PROGRAM [ARGUMENT...]\n", argv[0]);
    return 2;
  }
  const int dev_null = open("/dev/null", O_RDWR | O_CLOEXEC);
  if (dev_null < 0) {
    std::fprintf(stderr, "fork_exec: /dev/null: %s\n", std::strerror(errno));
    return 1;
  }

  const auto start = SteadyClock::now();
  const auto end = start + std::chrono::seconds(seconds);
  std::atomic<bool> failed = false;
  std::vector<std::vector<std::int64_t>> times(static_cast<std::size_t>(callers));
  std::vector<std::jthread> threads;
  threads.reserve(times.size());
  for (auto& mine : times) {
    threads.emplace_back([&failed, &mine, end, dev_null, argv] {
      for (auto before = SteadyClock::now(); before < end && !failed; before = SteadyClock::now()) {
        if (!run_once(argv + 3, dev_null)) failed = true;
        mine.push_back(std::chrono::duration_cast<std::chrono::microseconds>(SteadyClock::now() - before).count());
      }
    });
  }
  threads.clear();
  const double took = std::chrono::duration<double>(SteadyClock::now() - start).count();
  if (failed) {
    std::fprintf(stderr, "fork_exec: %s could not be run or failed\n", argv[3]);
    return 1;
  }

  std::vector<std::int64_t> all;
  for (const auto& mine : times)
    all.insert(all.end(), mine.begin(), mine.end());
  std::ranges::sort(all);
  std::printf("%.1f %lld %lld\n", static_cast<double>(all.size()) / took, static_cast<long long>(all[all.size() / 2]),
              static_cast<long long>(all[all.size() * 99 / 100]));
  return 0;
}
