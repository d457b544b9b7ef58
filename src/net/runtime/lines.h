#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/unique_fd.h"
#include "net/runtime/runtime.h"

/// Lines between this process and the one that started it, over standard input and output.
namespace hive::net {

/// Takes lines out of a stream of bytes. A line that is longer than the limit is skipped to its end and reported once,
/// so that it does not cost the lines behind it.
class LineSplitter {
 public:
  /// Gets each line without "\n" or "\r\n"; valid during the call.
  using LineHandler = std::function<void(std::string_view line)>;

  LineSplitter(std::size_t max_line_bytes, LineHandler on_line, std::function<void()> on_too_long)
      : max_line_bytes_(max_line_bytes), on_line_(std::move(on_line)), on_too_long_(std::move(on_too_long)) {}

  void feed(std::string_view piece);
  /// The stream has ended: what stands there without a newline is a line as well.
  void finish();

 private:
  void append(std::string_view part);
  void end_line();

  std::size_t max_line_bytes_;
  LineHandler on_line_;
  std::function<void()> on_too_long_;
  std::string line_;
  bool skips_ = false;
};

/// Reads lines on a thread of its own and hands them to a worker, in order. While the worker lags behind, nothing is
/// read, so that the writer on the other side has to wait.
class LineReader {
 public:
  enum class End {
    input,    ///< the other side closed it
    stopped,  ///< `stop_fd` became readable
    failed,   ///< reading failed; the log says why
  };
  struct Handlers {
    std::function<void(std::string line)> line;
    std::function<void()> too_long;
    std::function<void(End)> end;       ///< once, behind all lines
    std::function<void()> at_end = {};  ///< the same moment, but on the reader's thread: the worker may be stuck
  };

  /// `fd` must stay open as long as the reader exists. `stop_fd`: -1 for none.
  LineReader(Worker& worker, int fd, int stop_fd, std::size_t max_line_bytes, Handlers handlers);
  /// Stops reading; no handler is called any more. On the worker, or when it doesn't run.
  ~LineReader();
  LineReader(const LineReader&) = delete;
  LineReader& operator=(const LineReader&) = delete;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

/// Writes lines to a descriptor that may be shared with other processes, so it is left in the mode it has. Thread-safe.
class LineWriter {
 public:
  explicit LineWriter(int fd);

  /// The newline is added; newlines inside, which JSON has between its tokens only, become blanks. Waits while the
  /// other side does not read. A line is written whole, or nothing more is ever written.
  Result<void> write(std::string_view line);

  /// From now on all waiting together is limited. Any thread, also while another one waits.
  void limit_waiting(std::chrono::milliseconds limit);

 private:
  Result<void> write_all(std::string_view text);

  int fd_;
  UniqueFd wake_up_;
  std::mutex mutex_;
  bool is_broken_ = false;                                    // guarded by mutex_
  std::atomic<std::chrono::steady_clock::rep> deadline_ = 0;  // 0: none
};

}  // namespace hive::net
