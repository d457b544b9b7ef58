#pragma once

#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <future>
#include <string>
#include <thread>

#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/strings.h"
#include "base/unique_fd.h"
#include "exec/executable.h"
#include "exec/process_tree.h"
#include "exec/runner.h"

namespace hive::exec {

/// Waits for a condition without a fixed delay: looks every millisecond, gives up after `at_most`.
inline bool eventually(const std::function<bool()>& condition,
                       std::chrono::milliseconds at_most = std::chrono::seconds(30)) {
  auto end = std::chrono::steady_clock::now() + at_most;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

/// A folder that is removed with everything in it.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "hive-test-XXXXXX").string();
    path_ = ::mkdtemp(pattern.data());
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  [[nodiscard]] std::string operator/(std::string_view name) const { return path_ + "/" + std::string(name); }
  [[nodiscard]] const std::string& path() const { return path_; }

  std::string write(std::string_view name, std::string_view content, unsigned mode = 0644) const {
    std::string path = *this / name;
    std::ofstream(path, std::ios::binary) << content;
    std::filesystem::permissions(path, std::filesystem::perms(mode));
    return path;
  }

 private:
  std::string path_;
};

inline std::string read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Whether a process of this number exists and has not ended.
inline bool lives(pid_t pid) {
  auto info = read_process(pid);
  return info && !info->is_zombie();
}

/// Runs commands as the agent does: a worker on a thread of its own, a pool for starting programs.
class RunnerTest : public testing::Test {
 protected:
  RunnerTest() { runtime_.start(); }

  ~RunnerTest() override {
    on_worker([this] { runner_.reset(); });
    runtime_.stop();
  }

  // Quick limits, so that what must be killed is killed within the patience of a developer.
  void make_runner(RunnerOptions options = {.terminate_grace = std::chrono::milliseconds(300),
                                            .kill_wait = std::chrono::milliseconds(1000)}) {
    on_worker([&] {
      auto runner = Runner::create(runtime_, runtime_.worker(0), options);
      ASSERT_TRUE(runner) << runner.error().message;
      runner_ = *std::move(runner);
    });
  }

  void on_worker(std::function<void()> task) {
    std::promise<void> done;
    runtime_.worker(0).post([&] {
      task();
      done.set_value();
    });
    done.get_future().wait();
  }

  static Command shell(std::string script, std::chrono::milliseconds timeout = std::chrono::seconds(20)) {
    Command command;
    command.path = "/bin/sh";
    command.argv = {"sh", "-c", std::move(script)};
    command.environment = {"PATH=" + std::string(fixed_path)};
    command.timeout = timeout;
    return command;
  }

  static Command program(std::vector<std::string> argv) {
    Command command;
    command.path = resolve_executable(argv[0]).value_or("/nonexistent");
    command.argv = std::move(argv);
    command.environment = {"PATH=" + std::string(fixed_path)};
    return command;
  }

  std::future<CommandResult> start(Command command, OutputCallback on_output = {}) {
    if (!runner_) make_runner();
    auto promise = std::make_shared<std::promise<CommandResult>>();
    std::future<CommandResult> future = promise->get_future();
    on_worker([&] {
      last_ = runner_->run(std::move(command), std::move(on_output),
                           [promise](CommandResult result) { promise->set_value(std::move(result)); });
    });
    return future;
  }

  CommandResult run(Command command) { return start(std::move(command)).get(); }

  void cancel_last() {
    on_worker([this] { last_->cancel(); });
  }

  TemporaryFolder folder_;
  net::Runtime runtime_{1, 2};
  std::unique_ptr<Runner> runner_;
  std::shared_ptr<RunningCommand> last_;
};

}  // namespace hive::exec
