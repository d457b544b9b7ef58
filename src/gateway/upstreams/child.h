#pragma once

#include <array>
#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <boost/asio/posix/stream_descriptor.hpp>
#include <sys/types.h>

#include "base/result.h"
#include "exec/spawn.h"
#include "net/runtime/runtime.h"
#include "net/ssh/line_buffer.h"

/// Private to this room: a server that runs as our child and speaks in lines.
namespace hive::upstreams {

struct ChildSpec {
  std::string name;                                ///< of the upstream, for the log
  std::string command;                             ///< a bare word or an absolute path; never a shell's line
  std::vector<std::string> arguments;              ///
  std::map<std::string, std::string> environment;  ///< beside PATH, HOME and LANG, and stronger than these
  std::size_t max_line_bytes = std::size_t{4} << 20;
};

/// On the child's worker, later than the call that caused it; none after stop().
struct ChildEvents {
  std::function<void()> on_started;
  std::function<void(std::string_view line)> on_line;
  /// Could not be started, has exited, has closed its output, or sent too long a line. Nothing follows.
  std::function<void(const Error&)> on_ended;
};

/// One child in its own session and process group, with a fixed environment and no descriptor but its three streams.
/// What it prints on standard error goes to our log, bounded in size and rate. When it has ended, its whole group is
/// killed, and it is reaped without waiting. All functions on the worker.
class Child : public std::enable_shared_from_this<Child> {
 public:
  Child(net::Worker& worker, net::Runtime& runtime, ChildSpec spec, ChildEvents events);
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  void start();
  /// Queues a line for standard input; false when it has taken nothing for so long that the queue is full, or is gone.
  [[nodiscard]] bool write(std::string_view line);
  /// Closes its input, and after short whiles sends SIGTERM and SIGKILL to the group. Lives on until that is done.
  void stop();
  /// -1 when none runs.
  [[nodiscard]] pid_t pid() const { return pid_; }

 private:
  struct Started;
  void on_spawned(Result<Started> started);
  void read_output();
  void take_output(std::size_t count);
  void read_errors();
  void log_errors(std::size_t count);
  void log_line(std::string_view line);
  void write_more();
  void watch_exit();
  void on_exit();
  void drain_output();
  void signal_group(int signal) const;
  void end(Error error);

  net::Worker& worker_;
  net::Runtime& runtime_;
  ChildSpec spec_;
  ChildEvents events_;
  pid_t pid_ = -1;
  bool is_stopping_ = false;
  bool has_ended_ = false;  // on_ended has been called or is not wanted

  boost::asio::posix::stream_descriptor input_;
  boost::asio::posix::stream_descriptor output_;
  boost::asio::posix::stream_descriptor errors_;
  boost::asio::posix::stream_descriptor exit_;
  std::array<char, std::size_t{64} << 10> output_buffer_{};
  std::array<char, std::size_t{4} << 10> error_buffer_{};
  net::ssh::LineBuffer lines_;
  std::string error_line_;
  bool skips_error_line_ = false;
  double log_credit_;
  std::chrono::steady_clock::time_point log_time_;
  std::uint64_t unlogged_lines_ = 0;

  std::deque<std::string> queue_;
  std::size_t queued_bytes_ = 0;
  std::size_t written_ = 0;  // of the first in the queue
  bool is_writing_ = false;
  net::Timer escalation_;
};

}  // namespace hive::upstreams
