#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "base/result.h"
#include "config/agent_config.h"
#include "swarm/keys.h"
#include "swarm/ledger.h"

namespace hive::swarm {

struct Options {
  config::AgentConfig pattern;  ///< gateways, host key, allowlist and keepalive of every agent
  std::size_t threads = 1;
  std::chrono::milliseconds spread{0};  ///< the first dials are spread at random over this time
  std::chrono::milliseconds backoff_base = std::chrono::seconds(1);
  std::chrono::milliseconds backoff_cap = std::chrono::seconds(30);
  /// Every agent hangs up this long after its first answer, and dials again.
  std::optional<std::chrono::milliseconds> churn;
  bool real_host_facts = false;
};

/// Many agents in one process: each has a tunnel of its own, with its own key and backoff; those of one thread share
/// the tools and the allowlist. Made and ended from the main thread.
class Swarm {
 public:
  static Result<std::unique_ptr<Swarm>> create(Options options, std::vector<Identity> identities, Ledger& ledger);
  ~Swarm();
  Swarm(const Swarm&) = delete;
  Swarm& operator=(const Swarm&) = delete;

  void start();
  /// Ends running commands, closes all tunnels and waits for that.
  void stop();

 private:
  struct State;
  explicit Swarm(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace hive::swarm
