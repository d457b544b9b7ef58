#pragma once

#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "base/unique_fd.h"

namespace hive::net::ssh {

/// A program under test: standard input and the merged output are pipes. Killed when it outlives the test.
class Process {
 public:
  explicit Process(std::vector<std::string> arguments);
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  void write(std::string_view text);
  void close_input() { input_.reset(); }
  /// The next line of output without its newline; nullopt at the end of output or when none comes in time.
  std::optional<std::string> read_line();
  /// Everything up to the end of output.
  std::string read_all();
  void kill();
  /// Waits for the end: the exit code, or 128 and the signal.
  int wait();

 private:
  bool fill();

  pid_t pid_ = -1;
  UniqueFd input_;
  UniqueFd output_;
  std::string buffer_;
  int exit_code_ = -1;
};

}  // namespace hive::net::ssh
