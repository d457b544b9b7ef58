#pragma once

#include <signal.h>

#include "base/unique_fd.h"

namespace hive::cli {

/// While one exists, the first Ctrl-C (SIGINT) or SIGTERM makes fd() readable instead of ending the program; the second
/// one ends it at once. One at a time, from the main thread.
class Interruption {
 public:
  Interruption();
  ~Interruption();
  Interruption(const Interruption&) = delete;
  Interruption& operator=(const Interruption&) = delete;

  /// -1 when no pipe could be made; then signals keep ending the program.
  [[nodiscard]] int fd() const { return read_end_.get(); }

 private:
  UniqueFd read_end_;
  UniqueFd write_end_;
  struct sigaction old_interrupt_{};
  struct sigaction old_terminate_{};
};

}  // namespace hive::cli
