#include "agent/tunnel.h"

#include <array>
#include <cstdint>
#include <string_view>
#include <utility>

#include "agent/backoff.h"
#include "agent/host_key_trust.h"
#include "agent/watched_channel.h"
#include "base/log.h"
#include "crypto/random.h"
#include "protocol/agent_protocol.h"

namespace hive::agent {

namespace {

/// A ping may be late by the time that a gateway under load needs for a turn of its loop.
constexpr std::chrono::seconds silence_slack{5};
/// No ping is longer; longer lines are not looked at.
constexpr size_t max_ping_bytes = 512;

double kernel_random() {
  std::array<std::uint8_t, sizeof(std::uint32_t)> bytes{};
  crypto::random_bytes(bytes);
  std::uint32_t number = 0;
  for (const std::uint8_t byte : bytes)
    number = number << 8 | byte;
  return static_cast<double>(number) / static_cast<double>(UINT32_MAX);
}

bool is_ping(std::string_view line) {
  if (line.size() > max_ping_bytes || line.find("\"ping\"") == std::string_view::npos) return false;
  const auto request = protocol::parse_agent_request(line, {});
  return request && request->method == "ping";
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
    if (channel_) channel_->close("the agent is stopping");
    channel_.reset();
    tell(TunnelState::stopped);
  }

  void useful_exchange() override { backoff_.reset(); }

 private:
  void dial() {
    tell(TunnelState::connecting);
    net::ssh::ClientOptions options;
    options.host = gateway().host;
    options.port = gateway().port;
    options.user = config_.agent_id;
    options.private_key_path = config_.private_key_path;
    options.subsystem = std::string(protocol::ssh_subsystem);
    options.max_line_bytes = protocol::default_max_line_bytes;
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
    if (!result) return wait(std::move(result).error());
    pinged_ = false;
    last_line_ = clock_.steady_now();
    // A number tells the channel from the ones before it: their end may still be on its way.
    channel_ = watch_channel(
        std::move(*result),
        [weak = weak_from_this()](std::string_view line) {
          if (const auto self = weak.lock()) self->line_seen(line);
        },
        [weak = weak_from_this(), number = ++channels_](const Error& reason) {
          if (const auto self = weak.lock()) self->lost(number, reason);
        });
    log::info("connected to the gateway", {{"gateway", gateway().to_string()},
                                           {"host_key", channel_->peer().key_fingerprint},
                                           {"software", channel_->peer().software}});
    tell(TunnelState::connected);
    watch_silence();
    if (callbacks_.on_connected) callbacks_.on_connected(channel_);
  }

  void line_seen(std::string_view line) {
    last_line_ = clock_.steady_now();
    if (!pinged_) pinged_ = is_ping(line);
  }

  void watch_silence() {
    timer_ = worker_.schedule(config_.keepalive, [weak = weak_from_this()] {
      const auto self = weak.lock();
      if (!self || !self->channel_) return;
      const auto silence = self->clock_.steady_now() - self->last_line_;
      if (self->pinged_ && silence > self->config_.keepalive * 3 + silence_slack) {
        self->channel_->close(fmt::format("the gateway was silent for {} s",
                                          std::chrono::duration_cast<std::chrono::seconds>(silence).count()));
        return;
      }
      self->watch_silence();
    });
  }

  void lost(std::uint64_t number, const Error& reason) {
    if (!running_ || number != channels_ || !channel_) return;
    channel_.reset();
    wait(reason);
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
  net::Timer timer_;
  std::unique_ptr<net::ssh::ConnectAttempt> attempt_;
  std::shared_ptr<net::ssh::LineChannel> channel_;
  SteadyTime last_line_;
  std::uint64_t channels_ = 0;
  size_t index_ = 0;
  bool pinged_ = false;
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
