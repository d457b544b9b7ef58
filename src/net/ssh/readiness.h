#pragma once

#include <memory>

#include "base/result.h"
#include "net/runtime/runtime.h"

namespace hive::net::ssh {

/// Waits on a worker until a descriptor that somebody else owns is ready. Only on that worker.
class Readiness {
 public:
  class Listener {
   public:
    virtual ~Listener() = default;
    /// The descriptor may be readable, writable or broken.
    virtual void on_ready() = 0;
  };

  /// `fd` stays with its owner, who must call release() before or in the same breath as closing it: the number may
  /// belong to another connection a moment later.
  static Result<std::unique_ptr<Readiness>> watch(Worker& worker, int fd);
  ~Readiness();
  Readiness(const Readiness&) = delete;
  Readiness& operator=(const Readiness&) = delete;

  /// Tells `listener` once, and keeps it alive until then. Waiting twice is waiting once.
  void wait_readable(std::shared_ptr<Listener> listener);
  void wait_writable(std::shared_ptr<Listener> listener);

  /// Forgets the descriptor; nobody is told any more.
  void release();

 private:
  struct State;
  explicit Readiness(std::shared_ptr<State> state);
  std::shared_ptr<State> state_;
};

}  // namespace hive::net::ssh
