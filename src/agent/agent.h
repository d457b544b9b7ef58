#pragma once

#include <functional>
#include <memory>

#include "agent/tool.h"
#include "base/result.h"
#include "config/agent_config.h"
#include "net/runtime/runtime.h"
#include "net/ssh/line_channel.h"

namespace hive::agent {

/// Answers the calls of a gateway: what a channel brings goes through the allowlist to the tools, many at once.
/// Belongs to one worker: every function and callback runs there. Destroy it after the runtime has stopped, because
/// work in the pool may still use it. The destructor waits for reads of files; one from a dead network file system
/// never ends, so a program that must end sets itself a limit.
class Agent {
 public:
  /// Compiles the allowlist; may block. The error lists every broken entry.
  static Result<std::unique_ptr<Agent>> create(net::Runtime& runtime, net::Worker& worker, config::AgentConfig config);
  ~Agent();
  Agent(const Agent&) = delete;
  Agent& operator=(const Agent&) = delete;

  /// Answers what arrives on this channel until it closes; then the calls that it brought are cancelled.
  /// `on_useful_exchange` is called after each request of it that was understood and answered: the sign that a
  /// connection is worth keeping.
  void serve(std::shared_ptr<net::ssh::LineChannel> channel, std::move_only_function<void()> on_useful_exchange = {});

  /// Refuses new calls, ends the running ones, sends their results, closes the channels, then calls `done`; within a
  /// few seconds in every case.
  void stop(std::move_only_function<void()> done);

  /// Calls that have not been answered yet.
  [[nodiscard]] size_t running_calls() const;
  [[nodiscard]] const exec::Allowlist& allowlist() const;

 private:
  struct State;
  explicit Agent(std::shared_ptr<State> state);
  std::shared_ptr<State> state_;
};

}  // namespace hive::agent
