#pragma once

#include <csignal>
#include <string>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/unique_fd.h"
#include "exec/executable.h"
#include "exec/spawn.h"

namespace hive::upstreams::test {

inline std::string reference_server_path() {
  return HIVE_SOURCE_DIR "/tests/conformance/fixture.mjs";
}

/// The correct server of the conformance runs, in a process of its own, on a free port.
class ReferenceServer {
 public:
  explicit ReferenceServer(std::vector<std::string> arguments) {
    int ends[2];
    EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    output_.reset(ends[0]);
    UniqueFd write_end(ends[1]);
    UniqueFd null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    exec::SpawnRequest request;
    request.path = exec::resolve_executable("node").value_or("/usr/bin/node");
    request.argv = {"node", reference_server_path(), "--http", "0"};
    request.argv.insert(request.argv.end(), arguments.begin(), arguments.end());
    request.environment = {"PATH=" + std::string(exec::fixed_path)};
    request.output_fd = write_end.get();
    request.null_fd = null.get();
    auto started = exec::spawn(request);
    EXPECT_TRUE(started) << started.error().message;
    if (started) process_ = *std::move(started);
    write_end.reset();
    read_address();
  }
  ~ReferenceServer() {
    if (process_.pid <= 0) return;
    ::kill(-process_.pid, SIGKILL);
    ::waitpid(process_.pid, nullptr, 0);
  }
  ReferenceServer(const ReferenceServer&) = delete;
  ReferenceServer& operator=(const ReferenceServer&) = delete;

  /// "http://127.0.0.1:PORT"
  [[nodiscard]] const std::string& origin() const { return origin_; }
  [[nodiscard]] pid_t pid() const { return process_.pid; }

 private:
  void read_address() {
    std::string text;
    char buffer[4096];
    while (text.find('\n') == std::string::npos) {
      pollfd entry{output_.get(), POLLIN, 0};
      if (::poll(&entry, 1, 20'000) <= 0) break;
      ssize_t count = ::read(output_.get(), buffer, sizeof buffer);
      if (count <= 0) break;
      text.append(buffer, static_cast<std::size_t>(count));
    }
    std::size_t begin = text.find("http");
    std::size_t end = text.find("/mcp");
    ASSERT_TRUE(begin != std::string::npos && end != std::string::npos) << "the server did not start: " << text;
    origin_ = text.substr(begin, end - begin);
  }

  UniqueFd output_;
  exec::Spawned process_;
  std::string origin_;
};

}  // namespace hive::upstreams::test
