#include "container/program.h"

#include <cerrno>
#include <cstdlib>
#include <optional>

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/unique_fd.h"

namespace hive::container {

namespace {

constexpr const char* program_folders = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

std::vector<char*> pointers(std::vector<std::string>& strings) {
  std::vector<char*> all;
  for (std::string& text : strings)
    all.push_back(text.data());
  all.push_back(nullptr);
  return all;
}

std::vector<std::string> environment(const std::vector<std::string>& keep) {
  std::vector<std::string> all{std::string("PATH=") + program_folders, "LANG=C.UTF-8", "HOME=/root"};
  for (const std::string& name : keep) {
    if (const char* value = std::getenv(name.c_str())) all.push_back(name + "=" + value);
  }
  return all;
}

/// Where a program is; posix_spawnp would look into the caller's PATH.
Result<std::string> find_program(const std::string& name) {
  if (name.find('/') != std::string::npos) return name;
  std::string_view folders = program_folders;
  while (!folders.empty()) {
    size_t end = std::min(folders.find(':'), folders.size());
    std::string path = std::string(folders.substr(0, end)) + "/" + name;
    if (::access(path.c_str(), X_OK) == 0) return path;
    folders.remove_prefix(std::min(end + 1, folders.size()));
  }
  return fail(ErrorCode::not_found, "the program {} is not installed", name);
}

class FileActions {
 public:
  FileActions() { ::posix_spawn_file_actions_init(&actions_); }
  ~FileActions() { ::posix_spawn_file_actions_destroy(&actions_); }
  FileActions(const FileActions&) = delete;
  FileActions& operator=(const FileActions&) = delete;
  posix_spawn_file_actions_t* get() { return &actions_; }

 private:
  posix_spawn_file_actions_t actions_{};
};

Result<pid_t> start(std::vector<std::string> argv, const std::vector<std::string>& keep, int output_fd) {
  const std::string path = TRY(find_program(argv.at(0)));
  std::vector<std::string> variables = environment(keep);
  FileActions actions;
  if (output_fd >= 0) ::posix_spawn_file_actions_adddup2(actions.get(), output_fd, STDOUT_FILENO);
  pid_t pid = -1;
  int error =
      ::posix_spawn(&pid, path.c_str(), actions.get(), nullptr, pointers(argv).data(), pointers(variables).data());
  if (error != 0) return std::unexpected(system_error(error, path));
  return pid;
}

Result<int> wait_for(pid_t pid, const std::string& name) {
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0) {
    if (errno != EINTR) return std::unexpected(system_error(errno, name));
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

Result<void> check_exit(int code, const std::string& name) {
  if (code == 0) return {};
  return fail(ErrorCode::io, "{} ended with exit code {}; its message stands above", name, code);
}

}  // namespace

Result<int> run_program(const std::vector<std::string>& argv, const std::vector<std::string>& keep) {
  return wait_for(TRY(start(argv, keep, -1)), argv.at(0));
}

Result<void> must_run(const std::vector<std::string>& argv, const std::vector<std::string>& keep) {
  const pid_t pid = TRY(start(argv, keep, STDERR_FILENO));
  return check_exit(TRY(wait_for(pid, argv.at(0))), argv.at(0));
}

Result<std::string> output_of(const std::vector<std::string>& argv, size_t max_bytes) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return std::unexpected(system_error(errno, "pipe"));
  UniqueFd read_end(ends[0]);
  UniqueFd write_end(ends[1]);
  const pid_t pid = TRY(start(argv, {}, write_end.get()));
  write_end.reset();
  std::string output;
  std::optional<Error> problem;
  char buffer[8192];
  while (true) {
    ssize_t count = ::read(read_end.get(), buffer, sizeof buffer);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) problem = system_error(errno, argv.at(0));
    if (count <= 0) break;
    output.append(buffer, static_cast<size_t>(count));
    if (output.size() > max_bytes) {
      problem =
          Error{ErrorCode::resource_exhausted, fmt::format("{} printed more than {} bytes", argv.at(0), max_bytes)};
      break;
    }
  }
  // A program that still writes gets SIGPIPE.
  read_end.reset();
  const int code = TRY(wait_for(pid, argv.at(0)));
  if (problem) return std::unexpected(*problem);
  TRY(check_exit(code, argv.at(0)));
  return output;
}

Error become_program(const std::vector<std::string>& argv) {
  std::vector<std::string> words = argv;
  ::execv(words.at(0).c_str(), pointers(words).data());
  return system_error(errno, words.at(0));
}

}  // namespace hive::container
