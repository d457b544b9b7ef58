#include "net/runtime/lines.h"

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <thread>

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/log.h"

namespace hive::net {

namespace {

constexpr std::size_t read_bytes = std::size_t{64} << 10;
constexpr std::size_t max_waiting_bytes = std::size_t{8} << 20;
/// What a pipe or socket takes without blocking once poll() says that it can be written to (PIPE_BUF).
constexpr std::size_t write_bytes = 4096;

void signal(const UniqueFd& event) {
  std::uint64_t one = 1;
  // Only has to be readable; a counter that is full already is.
  static_cast<void>(!::write(event.get(), &one, sizeof one));
}

}  // namespace

void LineSplitter::feed(std::string_view piece) {
  while (!piece.empty()) {
    std::size_t end = piece.find('\n');
    append(piece.substr(0, end));
    if (end == std::string_view::npos) return;
    end_line();
    piece.remove_prefix(end + 1);
  }
}

void LineSplitter::append(std::string_view part) {
  if (skips_) return;
  // One byte more, for the "\r" that does not count.
  if (line_.size() + part.size() > max_line_bytes_ + 1) {
    skips_ = true;
    line_ = std::string();
    on_too_long_();
    return;
  }
  line_ += part;
}

void LineSplitter::end_line() {
  if (std::exchange(skips_, false)) return;
  if (line_.ends_with('\r')) line_.pop_back();
  if (line_.size() > max_line_bytes_) {
    on_too_long_();
  } else {
    on_line_(line_);
  }
  line_.clear();
  if (line_.capacity() > read_bytes) line_.shrink_to_fit();
}

void LineSplitter::finish() {
  if (!line_.empty() || skips_) end_line();
}

struct LineReader::State {
  Worker& worker;
  int fd;
  int stop_fd;
  std::size_t max_line_bytes;
  Handlers handlers;
  UniqueFd close_event = UniqueFd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  std::thread thread = {};
  std::mutex mutex = {};
  std::condition_variable has_room = {};
  std::size_t waiting_bytes = 0;  // guarded by mutex, as is the next
  bool is_closed = false;

  void post(const std::shared_ptr<State>& self, std::size_t bytes, Task task) {
    {
      std::unique_lock lock(mutex);
      has_room.wait(lock, [this] { return is_closed || waiting_bytes < max_waiting_bytes; });
      if (is_closed) return;
      waiting_bytes += bytes;
    }
    worker.post([self, bytes, task = std::move(task)]() mutable {
      {
        std::lock_guard lock(self->mutex);
        if (self->is_closed) return;
        self->waiting_bytes -= bytes;
      }
      self->has_room.notify_one();
      task();
    });
  }

  End read_all(LineSplitter& splitter) {
    std::string buffer(read_bytes, '\0');
    while (true) {
      pollfd waits[] = {{fd, POLLIN, 0}, {stop_fd, POLLIN, 0}, {close_event.get(), POLLIN, 0}};
      if (::poll(waits, std::size(waits), -1) < 0) {
        if (errno == EINTR) continue;
        return failed();
      }
      if (waits[1].revents != 0 || waits[2].revents != 0) return End::stopped;
      ssize_t count = ::read(fd, buffer.data(), buffer.size());
      if (count < 0 && (errno == EINTR || errno == EAGAIN)) continue;
      if (count < 0) return failed();
      if (count == 0) {
        splitter.finish();
        return End::input;
      }
      splitter.feed(std::string_view(buffer).substr(0, static_cast<std::size_t>(count)));
    }
  }

  static End failed() {
    log::error("standard input cannot be read", {{"reason", system_error(errno, "read").message}});
    return End::failed;
  }
};

LineReader::LineReader(Worker& worker, int fd, int stop_fd, std::size_t max_line_bytes, Handlers handlers)
    : state_(std::make_shared<State>(worker, fd, stop_fd, max_line_bytes, std::move(handlers))) {
  state_->thread = std::thread([state = state_] {
    LineSplitter splitter(
        state->max_line_bytes,
        [&state](std::string_view line) {
          state->post(state, line.size(),
                      [raw = state.get(), copy = std::string(line)]() mutable { raw->handlers.line(std::move(copy)); });
        },
        [&state] { state->post(state, 0, [raw = state.get()] { raw->handlers.too_long(); }); });
    End end = state->read_all(splitter);
    if (state->handlers.at_end) state->handlers.at_end();
    state->post(state, 0, [raw = state.get(), end] { raw->handlers.end(end); });
  });
}

LineReader::~LineReader() {
  {
    std::lock_guard lock(state_->mutex);
    state_->is_closed = true;
  }
  state_->has_room.notify_one();
  signal(state_->close_event);
  state_->thread.join();
}

LineWriter::LineWriter(int fd) : fd_(fd), wake_up_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

void LineWriter::limit_waiting(std::chrono::milliseconds limit) {
  deadline_ = (std::chrono::steady_clock::now() + limit).time_since_epoch().count();
  signal(wake_up_);
}

Result<void> LineWriter::write(std::string_view line) {
  std::string text;
  text.reserve(line.size() + 1);
  text = line;
  std::ranges::replace_if(text, [](char c) { return c == '\n' || c == '\r'; }, ' ');
  text += '\n';
  std::lock_guard lock(mutex_);
  if (is_broken_) return fail(ErrorCode::io, "standard output is closed");
  auto written = write_all(text);
  is_broken_ = !written;
  return written;
}

Result<void> LineWriter::write_all(std::string_view text) {
  while (!text.empty()) {
    int patience = -1;
    std::chrono::steady_clock::duration deadline(deadline_.load());
    if (deadline.count() != 0) {
      auto left = deadline - std::chrono::steady_clock::now().time_since_epoch();
      patience = static_cast<int>(
          std::clamp<long long>(std::chrono::ceil<std::chrono::milliseconds>(left).count(), 0, 60'000));
    }
    // Once the deadline is known there is nothing more to be woken up for.
    pollfd waits[] = {{fd_, POLLOUT, 0}, {deadline.count() == 0 ? wake_up_.get() : -1, POLLIN, 0}};
    int ready = ::poll(waits, std::size(waits), patience);
    if (ready < 0 && errno == EINTR) continue;
    if (ready < 0) return std::unexpected(system_error(errno, "standard output"));
    if (ready == 0) return fail(ErrorCode::timed_out, "nobody reads standard output");
    if (waits[0].revents == 0) continue;
    ssize_t count = ::write(fd_, text.data(), std::min(text.size(), write_bytes));
    if (count < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (count < 0) return std::unexpected(system_error(errno, "standard output"));
    text.remove_prefix(static_cast<std::size_t>(count));
  }
  return {};
}

}  // namespace hive::net
