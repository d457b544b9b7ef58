#include "swarm/swarm.h"

#include <future>
#include <random>
#include <utility>

#include "agent/agent.h"
#include "agent/tunnel.h"
#include "net/runtime/runtime.h"
#include "swarm/host_facts.h"

namespace hive::swarm {

namespace {

/// What an agent admits at once, times this, is what those of one thread admit together.
constexpr std::size_t busy_agents = 256;

}  // namespace

struct Swarm::State {
  /// The agents of one thread. On its worker.
  struct Shard {
    explicit Shard(net::Worker& used_worker) : worker(used_worker) {}
    net::Worker& worker;
    std::unique_ptr<agent::Agent> agent;
    std::vector<std::shared_ptr<agent::Tunnel>> tunnels;
    std::vector<net::Timer> timers;  // of each tunnel: until its first dial, later until it hangs up
  };

  State(Options used_options, Ledger& used_ledger)
      : options(std::move(used_options)), ledger(used_ledger), dialling(0, 2), runtime(options.threads, 2) {}

  Result<void> add(Identity identity, std::size_t number) {
    Shard& shard = shards[number % shards.size()];
    const std::size_t place = shard.tunnels.size();
    config::AgentConfig config = options.pattern;
    config.agent_id = std::move(identity.agent);
    config.private_key = std::move(identity.private_key);
    config.private_key_path.clear();
    // Of these the tunnel needs nothing, and there are many tunnels.
    config.allowed_commands.clear();
    config.allowed_commands.shrink_to_fit();
    config.log_paths.clear();
    agent::TunnelCallbacks callbacks;
    callbacks.on_connected = [this, &shard, place, number](std::shared_ptr<net::ssh::LineChannel> channel) {
      connected(shard, place, number, std::move(channel));
    };
    callbacks.on_state = [this, number, was_connected = false](const agent::TunnelStatus& status) mutable {
      if (status.state == agent::TunnelState::connecting) ledger.dialling(number);
      if (status.state == agent::TunnelState::waiting) {
        const std::string& reason = status.last_error.message;
        if (was_connected) {
          ledger.lost(number, reason);
        } else {
          ledger.dial_failed(number, reason);
        }
      }
      was_connected = status.state == agent::TunnelState::connected;
    };
    agent::TunnelTuning tuning;
    tuning.backoff_base = options.backoff_base;
    tuning.backoff_cap = options.backoff_cap;
    shard.tunnels.push_back(
        TRY(agent::Tunnel::create(dialling, shard.worker, std::move(config), std::move(callbacks), std::move(tuning))));
    shard.timers.emplace_back();
    return {};
  }

  void connected(Shard& shard, std::size_t place, std::size_t number, std::shared_ptr<net::ssh::LineChannel> channel) {
    const std::weak_ptr<net::ssh::LineChannel> weak = channel;
    auto on_useful_exchange = [this, &shard, place, number, weak, is_first = true]() mutable {
      shard.tunnels[place]->useful_exchange();
      if (!std::exchange(is_first, false)) return;
      ledger.answered(number);
      if (!options.churn) return;
      shard.timers[place] = shard.worker.schedule(*options.churn, [weak] {
        if (const auto open = weak.lock()) open->close("the swarm connects anew");
      });
    };
    if (!options.real_host_facts) channel = answer_host_facts(std::move(channel));
    shard.agent->serve(std::move(channel), std::move(on_useful_exchange));
  }

  void dial_all(Shard& shard) {
    std::mt19937_64 random(std::random_device{}());
    std::uniform_int_distribution<std::int64_t> delay(0, options.spread.count());
    for (std::size_t place = 0; place < shard.tunnels.size(); ++place) {
      shard.timers[place] = shard.worker.schedule(std::chrono::milliseconds(delay(random)),
                                                  [&shard, place] { shard.tunnels[place]->start(); });
    }
  }

  void end(Shard& shard, std::promise<void>& ended) {
    for (net::Timer& timer : shard.timers)
      timer.cancel();
    shard.agent->stop([&] {
      for (const auto& tunnel : shard.tunnels)
        tunnel->stop();
      // Behind what closing the channels has posted.
      shard.worker.post([&ended] { ended.set_value(); });
    });
  }

  Options options;
  Ledger& ledger;
  net::Runtime dialling;  // apart from the pool that starts commands, as in myrmex-agent
  net::Runtime runtime;
  std::vector<Shard> shards;
  bool started = false;
};

Swarm::Swarm(std::unique_ptr<State> state) : state_(std::move(state)) {}

Swarm::~Swarm() {
  stop();
}

Result<std::unique_ptr<Swarm>> Swarm::create(Options options, std::vector<Identity> identities, Ledger& ledger) {
  auto state = std::make_unique<State>(std::move(options), ledger);
  state->shards.reserve(state->runtime.size());
  for (std::size_t i = 0; i < state->runtime.size(); ++i) {
    State::Shard& shard = state->shards.emplace_back(state->runtime.worker(i));
    config::AgentConfig config = state->options.pattern;
    config.max_concurrent_calls *= busy_agents;
    shard.agent = TRY(agent::Agent::create(state->runtime, shard.worker, std::move(config)));
  }
  for (std::size_t number = 0; number < identities.size(); ++number)
    TRY(state->add(std::move(identities[number]), number));
  return std::unique_ptr<Swarm>(new Swarm(std::move(state)));
}

void Swarm::start() {
  for (State::Shard& shard : state_->shards)
    shard.worker.post([state = state_.get(), &shard] { state->dial_all(shard); });
  state_->runtime.start();
  state_->started = true;
}

void Swarm::stop() {
  State& state = *state_;
  if (std::exchange(state.started, false)) {
    for (State::Shard& shard : state.shards) {
      std::promise<void> ended;
      shard.worker.post([&] { state.end(shard, ended); });
      ended.get_future().wait();
    }
  }
  state.dialling.stop();
  state.runtime.stop();
  for (State::Shard& shard : state.shards) {
    shard.timers.clear();
    shard.tunnels.clear();
    shard.agent.reset();
  }
}

}  // namespace hive::swarm
