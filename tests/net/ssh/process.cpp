#include "net/ssh/process.h"

#include <array>
#include <cerrno>
#include <csignal>
#include <stdexcept>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>

namespace hive::net::ssh {

namespace {
constexpr int patience_milliseconds = 20'000;
}

Process::Process(std::vector<std::string> arguments) {
  std::array<int, 2> in{};
  std::array<int, 2> out{};
  if (::pipe2(in.data(), O_CLOEXEC) != 0 || ::pipe2(out.data(), O_CLOEXEC) != 0) throw std::runtime_error("pipe2");
  UniqueFd child_in(in[0]);
  UniqueFd child_out(out[1]);
  input_.reset(in[1]);
  output_.reset(out[0]);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, child_in.get(), STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, child_out.get(), STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, child_out.get(), STDERR_FILENO);
  std::vector<char*> argv;
  for (std::string& argument : arguments)
    argv.push_back(argument.data());
  argv.push_back(nullptr);
  const int error = ::posix_spawnp(&pid_, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) throw std::runtime_error("cannot run " + arguments.front());
  // A program that ends early must not end the test with it.
  ::signal(SIGPIPE, SIG_IGN);
}

Process::~Process() {
  kill();
  wait();
}

void Process::write(std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = ::write(input_.get(), text.data(), text.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return;
    text.remove_prefix(static_cast<size_t>(count));
  }
}

bool Process::fill() {
  pollfd waiting{.fd = output_.get(), .events = POLLIN, .revents = 0};
  if (::poll(&waiting, 1, patience_milliseconds) <= 0) return false;
  std::array<char, 16384> chunk{};
  const ssize_t count = ::read(output_.get(), chunk.data(), chunk.size());
  if (count <= 0) return false;
  buffer_.append(chunk.data(), static_cast<size_t>(count));
  return true;
}

std::optional<std::string> Process::read_line() {
  size_t newline = buffer_.find('\n');
  while (newline == std::string::npos) {
    if (!fill()) return std::nullopt;
    newline = buffer_.find('\n');
  }
  std::string line = buffer_.substr(0, newline);
  buffer_.erase(0, newline + 1);
  return line;
}

std::string Process::read_all() {
  while (fill()) {
  }
  return std::exchange(buffer_, {});
}

void Process::kill() {
  if (pid_ > 0) ::kill(pid_, SIGKILL);
}

int Process::wait() {
  if (pid_ > 0) {
    int status = 0;
    while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    pid_ = -1;
    exit_code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  return exit_code_;
}

}  // namespace hive::net::ssh
