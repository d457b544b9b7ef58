#include "cli/interruption.h"

#include <atomic>
#include <cerrno>

#include <fcntl.h>
#include <unistd.h>

namespace hive::cli {

namespace {

std::atomic<int> signal_pipe = -1;

void on_signal(int) {
  int saved = errno;
  char byte = 0;
  // The pipe is non-blocking and only has to be readable; a full one already is.
  static_cast<void>(!::write(signal_pipe.load(), &byte, 1));
  errno = saved;
}

}  // namespace

Interruption::Interruption() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) return;
  read_end_.reset(ends[0]);
  write_end_.reset(ends[1]);
  signal_pipe = ends[1];
  struct sigaction action{};
  action.sa_handler = &on_signal;
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  ::sigaction(SIGINT, &action, &old_interrupt_);
  ::sigaction(SIGTERM, &action, &old_terminate_);
}

Interruption::~Interruption() {
  if (!read_end_) return;
  ::sigaction(SIGINT, &old_interrupt_, nullptr);
  ::sigaction(SIGTERM, &old_terminate_, nullptr);
  signal_pipe = -1;
}

}  // namespace hive::cli
