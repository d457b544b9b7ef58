#include "agent/doctor_visit.h"

#include <future>
#include <utility>

#include "net/ssh/client.h"
#include "protocol/agent_protocol.h"
#include "protocol/json.h"

namespace hive::agent {

namespace {

constexpr size_t max_answer_bytes = size_t{64} << 10;
constexpr json::Limits answer_limits{.max_bytes = max_answer_bytes, .max_depth = 8, .max_values = 1000};

/// On one worker, from start() to `done`.
class Visit final : public net::ssh::LineChannel::Handler, public std::enable_shared_from_this<Visit> {
 public:
  Visit(net::Worker& worker, const VisitPlan& plan, std::promise<Sightings> done)
      : worker_(worker), plan_(plan), done_(std::move(done)) {}

  void start(net::Runtime& runtime) {
    mark_ = plan_.clock->steady_now();
    attempt_ = net::ssh::connect(runtime, worker_, options(),
                                 [self = shared_from_this()](Result<std::shared_ptr<net::ssh::LineChannel>> result) {
                                   self->attempt_.reset();
                                   if (!result) return self->finish(std::move(result).error());
                                   self->ask(std::move(*result));
                                 });
  }

  void on_line(std::string_view line) override {
    seen_.round_trip = lap();
    if (Result<void> read = read_answer(line); !read) {
      seen_.error = std::move(read).error();
    } else {
      seen_.answered = true;
    }
    channel_->close("the question is answered");
  }

  void on_closed(const Error& reason) override {
    timer_ = net::Timer();
    if (seen_.answered || seen_.error) return finish(std::nullopt);
    finish(Error{reason.code, fmt::format("the gateway closed the channel: {}", reason.message)});
  }

 private:
  net::ssh::ClientOptions options() {
    net::ssh::ClientOptions options;
    options.host = plan_.gateway.host;
    options.port = plan_.gateway.port;
    options.proxy = plan_.proxy;
    options.user = plan_.agent_id;
    options.subsystem = std::string(protocol::ssh_probe_subsystem);
    options.connect_timeout = options.handshake_timeout = plan_.step_timeout;
    options.max_line_bytes = max_answer_bytes;
    if (plan_.key && !plan_.key_path.empty()) {
      options.private_key_path = plan_.key_path;
    } else {
      // Without a key of its own the visit ends before one is needed.
      options.private_key = plan_.key ? plan_.key->to_openssh() : crypto::PrivateKey::generate("")->to_openssh();
    }
    options.verify_host_key = [this](const crypto::PublicKey& key) { return judge(key); };
    options.on_step = [this](net::ssh::ConnectStep step, const std::string& detail) { note(step, detail); };
    return options;
  }

  void note(net::ssh::ConnectStep step, const std::string& detail) {
    using net::ssh::ConnectStep;
    switch (step) {
      case ConnectStep::looked_up:
        seen_.addresses = detail;
        seen_.lookup = lap();
        break;
      case ConnectStep::at_proxy:
        seen_.proxy_address = detail;
        seen_.connect = lap();
        break;
      case ConnectStep::connected:
        seen_.address = detail;
        if (!seen_.proxy_address) seen_.connect = lap();
        break;
      case ConnectStep::keys_exchanged:
        seen_.software = detail;
        seen_.exchange = lap();
        break;
      case ConnectStep::authenticated:
        seen_.login = detail;
        seen_.authentication = lap();
        break;
    }
  }

  Result<void> judge(const crypto::PublicKey& key) {
    seen_.host_key = key.fingerprint();
    seen_.host_key_line = key.to_line();
    seen_.standing = plan_.trust->judge(plan_.gateway, key);
    if (!*seen_.standing) return std::unexpected(seen_.standing->error());
    if (!plan_.key) return fail(ErrorCode::cancelled, "there is no key to log in with");
    return {};
  }

  void ask(std::shared_ptr<net::ssh::LineChannel> channel) {
    seen_.asked = true;
    channel_ = std::move(channel);
    channel_->set_handler(shared_from_this());
    timer_ = worker_.schedule(plan_.step_timeout, [self = weak_from_this()] {
      const auto visit = self.lock();
      if (!visit) return;
      visit->seen_.error = Error{ErrorCode::timed_out, fmt::format("the gateway does not answer within {} ms",
                                                                   visit->plan_.step_timeout.count())};
      visit->channel_->close("no answer");
    });
    asked_at_ = plan_.clock->wall_now();
    (void)lap();
    if (auto sent = channel_->send(protocol::encode_request("1", "probe")); !sent) {
      seen_.error = std::move(sent).error();
      channel_->close("the question cannot be sent");
    }
  }

  Result<void> read_answer(std::string_view line) {
    const auto message = protocol::parse_agent_message(line, answer_limits);
    const auto* response = message ? std::get_if<protocol::AgentResponse>(&*message) : nullptr;
    if (response == nullptr || response->is_error || response->id != "1") {
      return fail(ErrorCode::corrupt, "the gateway's answer is not one to the question");
    }
    const auto members = TRY(json::parse_object(response->body, answer_limits));
    const auto member = [&](std::string_view name) { return json::find(members, name).value_or(""); };
    const auto unix_ms = json::decode_integer(member("unix_ms"));
    const auto online = json::decode_boolean(member("online"));
    if (!unix_ms || !online || *unix_ms < 0 || *unix_ms > 253'402'300'799'999) {
      return fail(ErrorCode::corrupt, "the gateway's answer lacks its time or whether the agent is online");
    }
    // Half of the round trip ago, as far as the way there is as long as the way back.
    const auto middle = asked_at_ + (plan_.clock->wall_now() - asked_at_) / 2;
    seen_.clock_difference = std::chrono::milliseconds(*unix_ms) -
                             std::chrono::duration_cast<std::chrono::milliseconds>(middle.time_since_epoch());
    seen_.online = *online;
    seen_.version = json::decode_string(member("version")).value_or("");
    seen_.online_from = json::decode_string(member("address")).value_or("");
    return {};
  }

  /// The time since the last call.
  std::chrono::microseconds lap() {
    const SteadyTime now = plan_.clock->steady_now();
    return std::chrono::duration_cast<std::chrono::microseconds>(now - std::exchange(mark_, now));
  }

  void finish(std::optional<Error> error) {
    if (error) seen_.error = std::move(error);
    done_.set_value(std::move(seen_));
  }

  net::Worker& worker_;
  const VisitPlan& plan_;
  std::promise<Sightings> done_;
  Sightings seen_;
  std::unique_ptr<net::ssh::ConnectAttempt> attempt_;
  std::shared_ptr<net::ssh::LineChannel> channel_;
  net::Timer timer_;
  SteadyTime mark_;
  WallTime asked_at_;
};

}  // namespace

Sightings visit(net::Runtime& runtime, net::Worker& worker, const VisitPlan& plan) {
  std::promise<Sightings> done;
  std::future<Sightings> result = done.get_future();
  worker.post([&] { std::make_shared<Visit>(worker, plan, std::move(done))->start(runtime); });
  Sightings seen = result.get();
  // What the visit has posted last is done when this is.
  std::promise<void> quiet;
  worker.post([&] { quiet.set_value(); });
  quiet.get_future().wait();
  return seen;
}

}  // namespace hive::agent
