#include "exec/process.h"

#include <algorithm>
#include <cerrno>

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"

namespace hive::exec {

namespace {

// How much one command may be read before others have their turn.
constexpr size_t read_turn_bytes = size_t{256} << 10;
constexpr std::chrono::milliseconds poll_interval{20};

enum class Exit {
  none,     // it lives
  known,    // its status has been taken
  unknown,  // it is no child of ours any more: somebody else took its status, or the kernel, where SIGCHLD is ignored
};

Exit take_exit(int pidfd, siginfo_t& status) {
  // P_PIDFD is 3; glibc knows it, the C++ enumeration idtype_t in older headers may not.
  while (::waitid(static_cast<idtype_t>(3), static_cast<id_t>(pidfd), &status, WEXITED | WNOHANG) < 0) {
    if (errno != EINTR) return Exit::unknown;
  }
  return status.si_pid != 0 ? Exit::known : Exit::none;
}

bool same_process(const ProcessInfo& left, const ProcessInfo& right) {
  return left.pid == right.pid && left.start_time == right.start_time;
}

}  // namespace

Process::Process(std::shared_ptr<ProcessHost> host, Command command, OutputCallback on_output, DoneCallback on_done)
    : host_(std::move(host)),
      command_(std::move(command)),
      on_output_(std::move(on_output)),
      on_done_(std::move(on_done)),
      started_at_(std::chrono::steady_clock::now()),
      spawned_(fail(ErrorCode::internal, "the command was not started")),
      output_(host_->worker.context()),
      exit_(host_->worker.context()),
      capture_(command_.max_output_bytes) {}

Process::~Process() {
  // Started by the pool, but on_spawned never had its turn: the loop has stopped. Nobody else is at it any more.
  if (pid_ < 0 && spawned_) pid_ = spawned_->pid;
  abandon();
}

void Process::start() {
  host_->starts();
  deadline_ = host_->worker.schedule(command_.timeout, [this] { stop(Ending::timed_out); });
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) < 0) {
    spawned_ = std::unexpected(system_error(errno, "create a pipe"));
    host_->worker.post([self = shared_from_this()] { self->on_spawned(); });
    return;
  }
  UniqueFd read_end(ends[0]);
  write_end_.reset(ends[1]);
  struct stat status{};
  if (::fstat(read_end.get(), &status) == 0) pipe_inode_ = status.st_ino;
  boost::system::error_code error;
  output_.assign(read_end.get(), error);
  if (!error) {
    (void)read_end.release();
    output_.native_non_blocking(true, error);
  }
  if (error) {
    spawned_ = fail(ErrorCode::resource_exhausted, "watch the output: {}", error.message());
    host_->worker.post([self = shared_from_this()] { self->on_spawned(); });
    return;
  }
  host_->runtime.run_blocking([self = shared_from_this()]() mutable {
    Process& process = *self;
    if (auto write_end = above_standard_streams(std::move(process.write_end_))) {
      process.spawned_ = spawn({.path = process.command_.path,
                                .argv = process.command_.argv,
                                .environment = process.command_.environment,
                                .run_as = process.command_.run_as,
                                .output_fd = write_end->get(),
                                .null_fd = process.host_->null_fd.get()});
    } else {
      process.spawned_ = std::unexpected(std::move(write_end).error());
    }
    // The last reference must not end on this thread.
    net::Worker& worker = process.host_->worker;
    worker.post([taken = std::move(self)] { taken->on_spawned(); });
  });
}

void Process::on_spawned() {
  host_->start_ended();
  if (!spawned_) {
    if (stage_ != Stage::starting) return;
    if (!stop_wanted_) {
      result_.ending = Ending::not_started;
      result_.problem = spawned_.error().message;
    }
    finish();
    return;
  }
  pid_ = spawned_->pid;
  host_->started(pid_);
  if (stage_ == Stage::ended) {
    // The result said already that it could not be started in time, or the runner is gone.
    kill_now();
    return;
  }
  boost::system::error_code error;
  exit_.assign(spawned_->pidfd.get(), error);
  if (error) {
    result_.ending = Ending::not_started;
    result_.problem = "watch the process: " + error.message();
    kill_now();
    finish();
    return;
  }
  (void)spawned_->pidfd.release();
  stage_ = Stage::running;
  watch_exit();
  watch_output();
  if (stop_wanted_) {
    stop_wanted_ = false;
    stop(result_.ending);
  }
}

void Process::watch_exit() {
  exit_.async_wait(boost::asio::posix::descriptor_base::wait_read,
                   [self = shared_from_this()](const boost::system::error_code& error) {
                     if (!error) self->on_exit();
                   });
}

void Process::on_exit() {
  if (!exit_.is_open()) return;
  siginfo_t status{};
  Exit exit = take_exit(exit_.native_handle(), status);
  if (exit == Exit::none) {
    watch_exit();
    return;
  }
  boost::system::error_code ignored;
  exit_.close(ignored);
  exited_ = true;
  host_->reaped(pid_);
  if (exit == Exit::known && status.si_code == CLD_EXITED) {
    result_.exit_code = status.si_status;
  } else if (exit == Exit::known) {
    result_.signal = status.si_status;
  }
  if (stage_ == Stage::ended) return;  // it had been given up
  if (stage_ == Stage::running) {
    result_.ending = result_.exit_code ? Ending::exited : result_.signal ? Ending::signalled : Ending::unknown;
    if (result_.ending == Ending::unknown) result_.problem = "exit status unknown: another part of the system took it";
  }
  read_output();
  advance();
}

void Process::watch_output() {
  if (!output_.is_open()) return;
  output_.async_wait(boost::asio::posix::descriptor_base::wait_read,
                     [self = shared_from_this()](const boost::system::error_code& error) {
                       if (error || !self->output_.is_open()) return;
                       self->read_output();
                       self->watch_output();
                       self->advance();
                     });
}

void Process::read_output() {
  std::array<char, size_t{64} << 10>& buffer = host_->buffer;
  size_t taken = 0;
  while (output_.is_open() && taken < read_turn_bytes) {
    ssize_t count = ::read(output_.native_handle(), buffer.data(), buffer.size());
    if (count > 0) {
      std::string_view bytes(buffer.data(), static_cast<size_t>(count));
      capture_.append(bytes);
      if (on_output_) stream_.append(bytes);
      taken += bytes.size();
    } else if (count < 0 && errno == EINTR) {
      continue;
    } else if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
      break;
    } else {
      close_output();
    }
  }
  if (taken > 0 && on_output_) schedule_progress();
}

void Process::close_output() {
  boost::system::error_code ignored;
  output_.close(ignored);
}

void Process::schedule_progress() {
  if (progress_armed_ || stage_ == Stage::ended) return;
  progress_armed_ = true;
  progress_ = host_->worker.schedule(host_->options.progress_interval, [this] {
    progress_armed_ = false;
    if (stage_ == Stage::ended || !stream_.has_text()) return;
    std::string text = stream_.take();
    on_output_(text, capture_.total_bytes());
  });
}

void Process::cancel() {
  stop(Ending::cancelled);
}

void Process::stop(Ending why) {
  switch (stage_) {
    case Stage::starting:
      if (stop_wanted_) return;
      stop_wanted_ = true;
      result_.ending = why;
      // The start itself may hang, on a dead network file system for example.
      enter(Stage::starting, host_->options.terminate_grace + host_->options.kill_wait);
      return;
    case Stage::running:
      result_.ending = why;
      result_.force = Force::terminate;
      enter(Stage::terminating, host_->options.terminate_grace);
      signal_all(SIGTERM);
      // A stopped process would not notice.
      signal_all(SIGCONT);
      return;
    case Stage::draining:
    case Stage::sweeping:
    case Stage::terminating:
    case Stage::killing:
    case Stage::ended:
      return;
  }
}

void Process::enter(Stage stage, std::chrono::milliseconds at_most) {
  stage_ = stage;
  stage_end_ = std::chrono::steady_clock::now() + at_most;
  schedule_poll();
}

void Process::schedule_poll() {
  poll_ = host_->worker.schedule(poll_interval, [this] {
    std::shared_ptr<Process> alive = shared_from_this();
    advance();
    if (stage_ != Stage::ended && stage_ != Stage::running) schedule_poll();
  });
}

void Process::advance() {
  switch (stage_) {
    case Stage::starting:
      if (stop_wanted_ && stage_is_over()) {
        result_.force = Force::failed;
        finish();
      }
      return;
    case Stage::running:
      if (!exited_) return;
      if (!output_.is_open() && !leftovers_exist()) {
        finish();
        return;
      }
      enter(Stage::draining, host_->options.leftover_grace);
      // For the rule that an outsider must be seen twice.
      if (output_.is_open()) (void)find_members();
      return;
    case Stage::draining:
      if (!output_.is_open() && !leftovers_exist()) {
        finish();
        return;
      }
      if (!stage_is_over()) return;
      enter(Stage::sweeping, host_->options.kill_wait);
      [[fallthrough]];
    case Stage::sweeping: {
      std::vector<ProcessInfo> members = find_members();
      if (members.empty() && outsiders_.empty() && killed_are_gone()) {
        finish();
        return;
      }
      for (const ProcessInfo& member : members)
        kill_leftover(member);
      if (stage_is_over()) {
        result_.force = Force::failed;
        finish();
      }
      return;
    }
    case Stage::terminating:
      if (exited_ && !leftovers_exist() && find_members().empty() && outsiders_.empty()) {
        finish();
        return;
      }
      if (!stage_is_over()) return;
      result_.force = Force::kill;
      enter(Stage::killing, host_->options.kill_wait);
      signal_all(SIGKILL);
      return;
    case Stage::killing:
      if (exited_ && !leftovers_exist() && find_members().empty() && outsiders_.empty()) {
        finish();
        return;
      }
      signal_all(SIGKILL);
      if (stage_is_over()) {
        result_.force = Force::failed;
        finish();
      }
      return;
    case Stage::ended:
      return;
  }
}

bool Process::leftovers_exist() {
  siginfo_t status{};
  for (;;) {
    status.si_pid = 0;
    if (::waitid(P_PGID, static_cast<id_t>(pid_), &status, WEXITED | WNOHANG) < 0) {
      if (errno == EINTR) continue;
      break;  // no child of ours in that group
    }
    if (status.si_pid == 0) return true;
  }
  for (pid_t orphan : host_->orphans.list()) {
    auto info = read_process(orphan);
    if (info && info->session == pid_ && !info->is_zombie()) return true;
  }
  return false;
}

std::vector<ProcessInfo> Process::find_members() {
  std::vector<ProcessInfo> members;
  std::vector<ProcessInfo> outsiders;
  for (const ProcessInfo& process : own_descendants()) {
    if (process.is_zombie()) continue;
    if (process.session == pid_) {
      members.push_back(process);
    } else if (output_.is_open() && !host_->is_command(process.session) && holds_pipe(process.pid, pipe_inode_)) {
      bool seen_before =
          std::ranges::any_of(outsiders_, [&](const auto& other) { return same_process(other, process); });
      if (seen_before) members.push_back(process);
      outsiders.push_back(process);
    }
  }
  outsiders_ = std::move(outsiders);
  return members;
}

void Process::signal_all(int signal) {
  // The number of the group is ours for as long as its leader has not been reaped. Signalling the group is atomic: not
  // even a process that forks all the time escapes it.
  if (!exited_) ::kill(-pid_, signal);
  for (const ProcessInfo& member : find_members()) {
    if (exited_ || member.group != pid_) signal_process(member, signal);
  }
}

void Process::kill_leftover(const ProcessInfo& process) {
  if (!signal_process(process, SIGKILL)) return;
  if (std::ranges::none_of(killed_, [&](const auto& other) { return same_process(other, process); })) {
    killed_.push_back(process);
  }
}

bool Process::killed_are_gone() const {
  // A dying process closes its descriptors some time before it is gone.
  return std::ranges::none_of(killed_, [](const ProcessInfo& killed) {
    auto now = read_process(killed.pid);
    return now && same_process(*now, killed) && !now->is_zombie();
  });
}

void Process::finish() {
  if (stage_ == Stage::ended) return;
  std::shared_ptr<Process> alive = shared_from_this();
  read_output();
  stage_ = Stage::ended;
  deadline_.cancel();
  poll_.cancel();
  progress_.cancel();
  close_output();
  result_.leftovers_killed = static_cast<unsigned>(killed_.size());
  result_.output = capture_.take();
  result_.duration =
      std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - started_at_);
  // If it lives on in the kernel, the wait on its descriptor keeps this object until it can be reaped.
  on_output_ = nullptr;
  DoneCallback done = std::exchange(on_done_, nullptr);
  host_->finished(*this);
  if (done) done(std::move(result_));
}

void Process::abandon() {
  stage_ = Stage::ended;
  on_output_ = nullptr;
  on_done_ = nullptr;
  deadline_.cancel();
  poll_.cancel();
  progress_.cancel();
  close_output();
  // While the pool is still starting it there is nothing to kill; on_spawned will find that it has ended.
  if (pid_ >= 0 && !exited_) kill_now();
}

void Process::kill_now() {
  int pidfd = exit_.is_open() ? exit_.native_handle() : spawned_->pidfd.get();
  signal_all(SIGKILL);
  // Bounded, because a process that waits in the kernel does not go; then it is left to init.
  pollfd ready{.fd = pidfd, .events = POLLIN, .revents = 0};
  siginfo_t status{};
  if (::poll(&ready, 1, static_cast<int>(host_->options.kill_wait.count())) > 0) {
    (void)take_exit(pidfd, status);
  }
  exited_ = true;
  host_->reaped(pid_);
  boost::system::error_code ignored;
  exit_.close(ignored);
}

}  // namespace hive::exec
