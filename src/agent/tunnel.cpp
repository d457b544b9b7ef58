#include "agent/tunnel.h"

#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "agent/host_key_trust.h"
#include "agent/stuck_output.h"
#include "agent/watched_channel.h"
#include "base/backoff.h"
#include "base/log.h"
#include "crypto/random.h"
#include "net/ssh/liveness.h"
#include "protocol/agent_protocol.h"

namespace hive::agent {

namespace {

/// With the headers of IPv6 below the 1,280 bytes that every IPv6 path takes (RFC 8200 section 5), and few IPv4 paths
/// take less.
constexpr int narrow_segment_bytes = 1160;

/// A gateway to which a whole fleet comes back serves one agent after another: who gives up early loses his place and
/// makes it do the work again.
constexpr std::chrono::seconds handshake_timeout{45};

double kernel_random() {
  std::array<std::uint8_t, sizeof(std::uint32_t)> bytes{};
  crypto::random_bytes(bytes);
  std::uint32_t number = 0;
  for (const std::uint8_t byte : bytes)
    number = number << 8 | byte;
  return static_cast<double>(number) / static_cast<double>(UINT32_MAX);
}

class TunnelImpl final : public Tunnel, public std::enable_shared_from_this<TunnelImpl> {
 public:
  TunnelImpl(net::Runtime& runtime, net::Worker& worker, config::AgentConfig config, HostKeyTrust trust,
             TunnelCallbacks callbacks, TunnelTuning tuning)
      : runtime_(runtime),
        worker_(worker),
        config_(std::move(config)),
        trust_(std::make_shared<HostKeyTrust>(std::move(trust))),
        callbacks_(std::move(callbacks)),
        clock_(*tuning.clock),
        connect_(tuning.connect ? std::move(tuning.connect) : TunnelTuning::Connect(net::ssh::connect)),
        backoff_(tuning.backoff_base, tuning.backoff_cap, tuning.random ? std::move(tuning.random) : kernel_random) {}

  void start() override {
    if (running_) return;
    running_ = true;
    dial();
  }

  void stop() override {
    if (!running_) return;
    running_ = false;
    timer_ = net::Timer();
    attempt_.reset();
    for (const auto& [number, connection] : std::exchange(connections_, {}))
      connection.channel->close("the agent is stopping");
    tell(TunnelState::stopped);
  }

  void useful_exchange() override { backoff_.reset(); }

  void use_private_key(config::Secret key) override { config_.private_key = std::move(key); }

  void renew() override {
    if (!running_) return;
    if (attempt_) {
      // That attempt may have read the old key already.
      renew_again_ = true;
      return;
    }
    if (is_connected()) log::info("connecting with the new key", {{"gateway", gateway().to_string()}});
    timer_ = net::Timer();
    dial();
  }

 private:
  struct Connection {
    std::shared_ptr<net::ssh::LineChannel> channel;
    net::ssh::Liveness liveness;
    StuckOutput output;
    size_t gateway;
    net::Timer check;
  };

  /// Whether the newest connection stands. Older ones that still do are the gateway's to close.
  [[nodiscard]] bool is_connected() const { return connections_.contains(newest_); }

  void dial() {
    if (!is_connected()) tell(TunnelState::connecting);
    net::ssh::ClientOptions options;
    options.host = gateway().host;
    options.port = gateway().port;
    options.user = config_.agent_id;
    options.private_key_path = config_.private_key_path;
    options.private_key = config_.private_key.reveal();
    options.subsystem = std::string(protocol::ssh_subsystem);
    options.max_line_bytes = protocol::default_max_line_bytes;
    options.handshake_timeout = handshake_timeout;
    if (const config::ProxyAddress* proxy = config_.proxy_for(gateway())) options.proxy = *proxy;
    if (narrow_.contains(index_)) options.max_segment_bytes = narrow_segment_bytes;
    options.verify_host_key = [trust = trust_, address = gateway()](const crypto::PublicKey& key) {
      return trust->verify(address, key);
    };
    attempt_ = connect_(runtime_, worker_, std::move(options),
                        [weak = weak_from_this()](Result<std::shared_ptr<net::ssh::LineChannel>> result) {
                          if (const auto self = weak.lock()) self->dialed(std::move(result));
                        });
  }

  void dialed(Result<std::shared_ptr<net::ssh::LineChannel>> result) {
    if (!running_) return;
    attempt_.reset();
    const bool again = std::exchange(renew_again_, false);
    if (result) {
      take(std::move(*result));
      if (again) dial();
      return;
    }
    if (again) return dial();
    if (!is_connected()) return wait(std::move(result).error());
    log::error("the new key does not connect; the old connection stays. Mend the cause, then reload again",
               {{"gateway", gateway().to_string()}, {"reason", result.error().message}});
  }

  void take(std::shared_ptr<net::ssh::LineChannel> channel) {
    // A number tells the channel from the ones before it: their end may still be on its way.
    const std::uint64_t number = ++newest_;
    std::shared_ptr<net::ssh::LineChannel> watched = watch_channel(
        std::move(channel),
        [weak = weak_from_this(), number](std::string_view /*line*/) {
          if (const auto self = weak.lock()) self->line_seen(number);
        },
        [weak = weak_from_this(), number](const Error& reason) {
          if (const auto self = weak.lock()) self->lost(number, reason);
        });
    const SteadyTime now = clock_.steady_now();
    connections_.emplace(number, Connection{watched, net::ssh::Liveness(now, config_.keepalive), StuckOutput(now),
                                            index_, net::Timer()});
    log::info("connected to the gateway", {{"gateway", gateway().to_string()},
                                           {"host_key", watched->peer().key_fingerprint},
                                           {"software", watched->peer().software}});
    tell(TunnelState::connected);
    check_later(number, config_.keepalive / 2);
    if (callbacks_.on_connected) callbacks_.on_connected(std::move(watched));
  }

  void line_seen(std::uint64_t number) {
    if (const auto found = connections_.find(number); found != connections_.end()) {
      found->second.liveness.heard(clock_.steady_now());
    }
  }

  void check_later(std::uint64_t number, SteadyTime::duration delay) {
    connections_.at(number).check =
        worker_.schedule(std::chrono::ceil<std::chrono::milliseconds>(delay), [weak = weak_from_this(), number] {
          if (const auto self = weak.lock()) self->check(number);
        });
  }

  void check(std::uint64_t number) {
    const auto found = connections_.find(number);
    if (found == connections_.end()) return;
    Connection& connection = found->second;
    const SteadyTime now = clock_.steady_now();
    const net::ssh::Traffic traffic = connection.channel->traffic();
    connection.output.look(now, traffic);
    const net::ssh::Liveness::Verdict verdict = connection.liveness.check(now, traffic);
    // lost() follows later, never from within.
    if (!verdict.dead.empty()) return connection.channel->close("the gateway: " + verdict.dead);
    // Gateways of the Go product answer no ping of an agent, but every SSH answers this.
    if (verdict.probe) connection.channel->probe();
    check_later(number, verdict.next);
  }

  void lost(std::uint64_t number, const Error& reason) {
    if (!running_) return;
    const auto found = connections_.find(number);
    if (found == connections_.end()) return;
    note_stuck(found->second);
    connections_.erase(found);
    if (number != newest_) {
      log::info("the gateway has closed the old connection", {{"reason", reason.message}});
      return;
    }
    // An attempt with a new key may be on its way already.
    if (!attempt_) wait(reason);
  }

  /// A connection whose output stood still to its end may have met a path that takes small packets only, as a
  /// handshake's are, and says so to nobody: the next ones do with small packets. It costs little where the reason was
  /// another.
  void note_stuck(const Connection& connection) {
    if (connection.output.lasts(clock_.steady_now()) < config_.keepalive) return;
    if (!narrow_.insert(connection.gateway).second) return;
    log::info("what was sent did not arrive: from now on in packets of no more than 1,220 bytes",
              {{"gateway", config_.gateways[connection.gateway].to_string()}});
  }

  void wait(Error reason) {
    attempt_.reset();
    const std::chrono::milliseconds delay = backoff_.next();
    log::warning("not connected to a gateway",
                 {{"gateway", gateway().to_string()}, {"reason", reason.message}, {"retry_in_ms", delay.count()}});
    tell(TunnelState::waiting, std::move(reason), delay);
    index_ = (index_ + 1) % config_.gateways.size();
    timer_ = worker_.schedule(delay, [weak = weak_from_this()] {
      const auto self = weak.lock();
      if (self && self->running_) self->dial();
    });
  }

  void tell(TunnelState state, Error error = {}, std::chrono::milliseconds retry_in = {}) {
    if (callbacks_.on_state) callbacks_.on_state(TunnelStatus{state, gateway(), std::move(error), retry_in});
  }

  [[nodiscard]] const config::GatewayAddress& gateway() const { return config_.gateways[index_]; }

  net::Runtime& runtime_;
  net::Worker& worker_;
  config::AgentConfig config_;
  std::shared_ptr<const HostKeyTrust> trust_;
  TunnelCallbacks callbacks_;
  const Clock& clock_;
  TunnelTuning::Connect connect_;
  Backoff backoff_;
  net::Timer timer_;                                   // until the next try
  std::unique_ptr<net::ssh::ConnectAttempt> attempt_;  // null: none is under way
  std::map<std::uint64_t, Connection> connections_;    // by number
  std::uint64_t newest_ = 0;
  size_t index_ = 0;
  std::set<size_t> narrow_;  // gateways behind a path that may swallow large packets
  bool renew_again_ = false;
  bool running_ = false;
};

}  // namespace

Result<std::shared_ptr<Tunnel>> Tunnel::create(net::Runtime& runtime, net::Worker& worker, config::AgentConfig config,
                                               TunnelCallbacks callbacks, TunnelTuning tuning) {
  if (config.gateways.empty()) {
    return fail(ErrorCode::invalid_argument, "{}: gateway_addr: no gateway is named", config.source_path);
  }
  HostKeyTrust trust = TRY(HostKeyTrust::create(config));
  return std::make_shared<TunnelImpl>(runtime, worker, std::move(config), std::move(trust), std::move(callbacks),
                                      std::move(tuning));
}

}  // namespace hive::agent
