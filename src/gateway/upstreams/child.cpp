#include "gateway/upstreams/child.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>

#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "base/strings.h"
#include "exec/environment.h"
#include "exec/executable.h"

namespace hive::upstreams {

namespace {

using boost::asio::posix::stream_descriptor;
using boost::system::error_code;

constexpr std::size_t max_queued_bytes = std::size_t{16} << 20;
constexpr std::size_t max_logged_bytes = 1024;  // of one line
constexpr double log_lines_per_second = 10;
constexpr double log_burst = 50;
constexpr std::chrono::milliseconds grace_after_end_of_input(500);
constexpr std::chrono::milliseconds grace_after_sigterm(2000);
constexpr int max_reads_after_exit = 256;

struct Pipe {
  UniqueFd read_end;
  UniqueFd write_end;
};

Result<Pipe> open_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return std::unexpected(system_error(errno, "open a pipe"));
  Pipe pipe{.read_end = UniqueFd(ends[0]), .write_end = UniqueFd(ends[1])};
  pipe.read_end = TRY(exec::above_standard_streams(std::move(pipe.read_end)));
  pipe.write_end = TRY(exec::above_standard_streams(std::move(pipe.write_end)));
  return pipe;
}

Result<void> set_nonblocking(int fd) {
  int flags = ::fcntl(fd, F_GETFL);
  if (flags < 0 || ::fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0) {
    return std::unexpected(system_error(errno, "make a pipe non-blocking"));
  }
  return {};
}

std::vector<std::string> environment_of(const ChildSpec& spec) {
  std::map<std::string, std::string> variables = {
      {"PATH", std::string(exec::fixed_path)}, {"HOME", exec::current_account().home}, {"LANG", "C.UTF-8"}};
  for (const auto& [name, value] : spec.environment)
    variables[name] = value;
  std::vector<std::string> environment;
  environment.reserve(variables.size());
  for (const auto& [name, value] : variables)
    environment.push_back(name + "=" + value);
  return environment;
}

/// The environment as it is handed over cannot hold NUL characters or nameless variables.
Result<void> check_environment(const ChildSpec& spec) {
  for (const auto& [name, value] : spec.environment) {
    if (name.empty() || name.find('=') != std::string::npos || name.find('\0') != std::string::npos) {
      return fail(ErrorCode::invalid_argument, "{} is not a name for an environment variable", quote(name));
    }
    if (value.find('\0') != std::string::npos) {
      return fail(ErrorCode::invalid_argument, "the value of environment variable {} holds a NUL character", name);
    }
  }
  return {};
}

std::string describe_end(const siginfo_t& info) {
  if (info.si_code == CLD_EXITED) return fmt::format("the server's process ended with status {}", info.si_status);
  return fmt::format("the server's process was ended by signal {} ({})", info.si_status, ::strsignal(info.si_status));
}

}  // namespace

struct Child::Started {
  exec::Spawned process;
  UniqueFd input;
  UniqueFd output;
  UniqueFd errors;
};

Child::Child(net::Worker& worker, net::Runtime& runtime, ChildSpec spec, ChildEvents events)
    : worker_(worker),
      runtime_(runtime),
      spec_(std::move(spec)),
      events_(std::move(events)),
      input_(worker.context()),
      output_(worker.context()),
      errors_(worker.context()),
      exit_(worker.context()),
      lines_(spec_.max_line_bytes),
      log_credit_(log_burst),
      log_time_(std::chrono::steady_clock::now()) {}

Child::~Child() {
  // Only when the worker has been stopped under us: nobody is left who could wait.
  if (pid_ < 0) return;
  signal_group(SIGKILL);
  siginfo_t info{};
  while (::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED) < 0 && errno == EINTR) {
  }
}

void Child::start() {
  auto launch = [](const ChildSpec& spec) -> Result<Started> {
    TRY(check_environment(spec));
    auto path = spec.environment.find("PATH");
    std::string program = TRY(exec::resolve_executable(
        spec.command, path == spec.environment.end() ? exec::fixed_path : std::string_view(path->second)));
    Pipe input = TRY(open_pipe());
    Pipe output = TRY(open_pipe());
    Pipe errors = TRY(open_pipe());
    for (int fd : {input.write_end.get(), output.read_end.get(), errors.read_end.get()})
      TRY(set_nonblocking(fd));
    exec::SpawnRequest request{
        .path = program, .argv = {spec.command}, .environment = environment_of(spec), .run_as = {}};
    request.argv.insert(request.argv.end(), spec.arguments.begin(), spec.arguments.end());
    request.null_fd = input.read_end.get();
    request.output_fd = output.write_end.get();
    request.error_fd = errors.write_end.get();
    return Started{.process = TRY(exec::spawn(request)),
                   .input = std::move(input.write_end),
                   .output = std::move(output.read_end),
                   .errors = std::move(errors.read_end)};
  };
  // Loading a program may wait for a disk.
  runtime_.run_blocking([self = shared_from_this(), launch] {
    auto started = launch(self->spec_);
    net::Worker& worker = self->worker_;
    worker.post([self, moved = std::move(started)]() mutable { self->on_spawned(std::move(moved)); });
  });
}

void Child::on_spawned(Result<Started> started) {
  if (!started) return end(with_context(started.error(), "start " + quote(spec_.command)));
  pid_ = started->process.pid;
  error_code failure;
  exit_.assign(started->process.pidfd.release(), failure);
  input_.assign(started->input.release(), failure);
  output_.assign(started->output.release(), failure);
  errors_.assign(started->errors.release(), failure);
  watch_exit();
  read_errors();
  if (is_stopping_) {
    is_stopping_ = false;
    return stop();
  }
  read_output();
  if (events_.on_started) events_.on_started();
}

void Child::read_output() {
  output_.async_read_some(
      boost::asio::buffer(output_buffer_), [self = shared_from_this()](error_code failure, std::size_t count) {
        if (self->has_ended_) return;
        if (!failure) {
          self->take_output(count);
          if (!self->has_ended_ && self->output_.is_open()) self->read_output();
        } else if (self->pid_ >= 0 && failure != boost::asio::error::operation_aborted) {
          // A server that has exited says so through its pidfd, with the status; give that a moment
          // to come first.
          self->escalation_ = self->worker_.schedule(grace_after_end_of_input, [weak = self->weak_from_this()] {
            if (auto child = weak.lock())
              child->end({ErrorCode::io, "the server closed its standard output without ending"});
          });
        }
      });
}

void Child::take_output(std::size_t count) {
  lines_.append({output_buffer_.data(), count});
  while (!has_ended_) {
    auto line = lines_.next_line();
    if (!line) break;
    std::string_view text = *line;
    if (text.ends_with('\r')) text.remove_suffix(1);
    if (!text.empty() && events_.on_line) events_.on_line(text);
  }
  if (lines_.line_too_long()) {
    return end({ErrorCode::corrupt, fmt::format("the server sent a line of more than {} bytes", spec_.max_line_bytes)});
  }
  lines_.compact();
}

void Child::read_errors() {
  errors_.async_read_some(boost::asio::buffer(error_buffer_),
                          [self = shared_from_this()](error_code failure, std::size_t count) {
                            if (failure) return;
                            self->log_errors(count);
                            self->read_errors();
                          });
}

void Child::log_errors(std::size_t count) {
  std::string_view text(error_buffer_.data(), count);
  while (!text.empty()) {
    std::size_t end = text.find('\n');
    std::string_view part = text.substr(0, end);
    if (!skips_error_line_) error_line_.append(part.substr(0, max_logged_bytes - error_line_.size()));
    bool is_complete = end != std::string_view::npos;
    if (!skips_error_line_ && (is_complete || error_line_.size() >= max_logged_bytes)) {
      log_line(trim(error_line_));
      error_line_.clear();
      skips_error_line_ = true;  // the rest of a line that is too long
    }
    if (is_complete) skips_error_line_ = false;
    text.remove_prefix(is_complete ? end + 1 : text.size());
  }
}

void Child::log_line(std::string_view line) {
  if (line.empty()) return;
  auto now = std::chrono::steady_clock::now();
  std::chrono::duration<double> passed = now - log_time_;
  log_time_ = now;
  log_credit_ = std::min(log_burst, log_credit_ + passed.count() * log_lines_per_second);
  if (log_credit_ < 1) {
    ++unlogged_lines_;
    return;
  }
  log_credit_ -= 1;
  if (unlogged_lines_ > 0) {
    log::warning("an upstream server wrote more to its standard error than is logged",
                 {{"upstream", spec_.name}, {"lines_left_out", std::exchange(unlogged_lines_, 0)}});
  }
  log::info("upstream server's standard error", {{"upstream", spec_.name}, {"line", line}});
}

bool Child::write(std::string_view line) {
  if (!input_.is_open() || queued_bytes_ + line.size() > max_queued_bytes) return false;
  queued_bytes_ += line.size() + 1;
  queue_.emplace_back(line).push_back('\n');
  if (!is_writing_) write_more();
  return true;
}

void Child::write_more() {
  is_writing_ = true;
  const std::string& first = queue_.front();
  input_.async_write_some(boost::asio::buffer(first.data() + written_, first.size() - written_),
                          [self = shared_from_this()](error_code failure, std::size_t count) {
                            self->is_writing_ = false;
                            if (!self->input_.is_open()) return;
                            if (failure) {
                              // It does not read any more; its end is reported by the pidfd or by its output.
                              error_code ignored;
                              self->input_.close(ignored);
                              return;
                            }
                            self->written_ += count;
                            if (self->written_ == self->queue_.front().size()) {
                              self->queued_bytes_ -= self->written_;
                              self->written_ = 0;
                              self->queue_.pop_front();
                            }
                            if (!self->queue_.empty()) self->write_more();
                          });
}

void Child::watch_exit() {
  exit_.async_wait(stream_descriptor::wait_read, [self = shared_from_this()](error_code failure) {
    if (!failure) self->on_exit();
  });
}

void Child::on_exit() {
  if (pid_ < 0) return;
  // As long as the leader is not reaped, its number cannot be anybody else's group.
  signal_group(SIGKILL);
  siginfo_t info{};
  if (::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG) < 0 || info.si_pid == 0) {
    return watch_exit();
  }
  pid_ = -1;
  escalation_.cancel();
  drain_output();
  error_code ignored;
  input_.close(ignored);
  output_.close(ignored);
  errors_.close(ignored);
  exit_.close(ignored);
  end({ErrorCode::io, describe_end(info)});
}

void Child::drain_output() {
  // What it said before it ended counts; a process that has left the group may still be writing, hence the bound.
  for (int reads = 0; reads < max_reads_after_exit && !has_ended_ && output_.is_open(); ++reads) {
    ssize_t count = ::read(output_.native_handle(), output_buffer_.data(), output_buffer_.size());
    if (count <= 0) break;
    take_output(static_cast<std::size_t>(count));
  }
}

void Child::signal_group(int signal) const {
  if (pid_ > 0) ::kill(-pid_, signal);
}

void Child::stop() {
  has_ended_ = true;
  if (std::exchange(is_stopping_, true)) return;
  if (pid_ < 0) return;
  error_code ignored;
  input_.close(ignored);
  output_.close(ignored);
  queue_.clear();
  // The watch for its exit keeps this object alive, not the timers: when the worker's loop goes, so does the child.
  escalation_ = worker_.schedule(grace_after_end_of_input, [weak = weak_from_this()] {
    auto self = weak.lock();
    if (self == nullptr) return;
    self->signal_group(SIGTERM);
    self->escalation_ = self->worker_.schedule(grace_after_sigterm, [weak] {
      if (auto child = weak.lock()) child->signal_group(SIGKILL);
    });
  });
}

void Child::end(Error error) {
  if (std::exchange(has_ended_, true)) return;
  auto on_ended = std::move(events_.on_ended);
  stop();
  if (on_ended) on_ended(error);
}

}  // namespace hive::upstreams
