#include "cli/prompt.h"

#include <cerrno>
#include <optional>

#include <poll.h>
#include <termios.h>
#include <unistd.h>

namespace hive::cli {

namespace {

constexpr size_t max_line_bytes = 4096;

/// While one exists, the terminal does not show what is typed.
class Silence {
 public:
  Silence() {
    if (::tcgetattr(STDIN_FILENO, &before_) != 0) return;
    termios silent = before_;
    silent.c_lflag &= ~static_cast<tcflag_t>(ECHO);
    silent.c_lflag |= ECHONL;
    is_silent_ = ::tcsetattr(STDIN_FILENO, TCSAFLUSH, &silent) == 0;
  }
  ~Silence() {
    // Nothing can be done about a terminal that went away.
    if (is_silent_) static_cast<void>(::tcsetattr(STDIN_FILENO, TCSAFLUSH, &before_));
  }
  Silence(const Silence&) = delete;
  Silence& operator=(const Silence&) = delete;

  [[nodiscard]] bool is_silent() const { return is_silent_; }

 private:
  termios before_{};
  bool is_silent_ = false;
};

}  // namespace

bool can_ask() {
  return ::isatty(STDIN_FILENO) == 1 && ::isatty(STDERR_FILENO) == 1;
}

Result<std::string> ask_line(const std::string& question, bool echo, int cancel_fd) {
  std::optional<Silence> silence;
  if (!echo) {
    silence.emplace();
    if (!silence->is_silent())
      return std::unexpected(system_error(errno, "the terminal's echo cannot be switched off"));
  }
  // A question that cannot be shown still waits for its answer; whoever types sees a cursor.
  static_cast<void>(!::write(STDERR_FILENO, question.data(), question.size()));
  std::string line;
  while (true) {
    pollfd sources[2] = {{STDIN_FILENO, POLLIN, 0}, {cancel_fd, POLLIN, 0}};
    if (::poll(sources, 2, -1) < 0) {
      if (errno == EINTR) continue;
      return std::unexpected(system_error(errno, "standard input"));
    }
    if (sources[1].revents != 0) return fail(ErrorCode::cancelled, "interrupted");
    char byte = 0;
    ssize_t count = ::read(STDIN_FILENO, &byte, 1);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return std::unexpected(system_error(errno, "standard input"));
    if (count == 0) return fail(ErrorCode::cancelled, "standard input ended without an answer");
    if (byte == '\n') return line;
    if (line.size() == max_line_bytes) {
      return fail(ErrorCode::resource_exhausted, "standard input: a line of more than {} bytes", max_line_bytes);
    }
    line += byte;
  }
}

}  // namespace hive::cli
