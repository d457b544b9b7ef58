#pragma once

#include <chrono>
#include <future>
#include <thread>

namespace hive::agent {

/// Ends the program, with exit code 0, when the scope it guards is not left in time. For the orderly end of the agent:
/// a thread that reads from a dead network file system cannot be ended, and whoever sent SIGTERM should not have to
/// send SIGKILL. The kernel ends running commands with us.
class EndLimit {
 public:
  explicit EndLimit(std::chrono::milliseconds limit);
  ~EndLimit();
  EndLimit(const EndLimit&) = delete;
  EndLimit& operator=(const EndLimit&) = delete;

 private:
  std::promise<void> ended_;
  std::thread thread_;
};

}  // namespace hive::agent
