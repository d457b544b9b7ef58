#include "gateway/fleet/probe.h"

#include <chrono>
#include <utility>

#include "base/log.h"
#include "protocol/agent_protocol.h"
#include "protocol/json.h"

namespace hive::fleet {

namespace {

constexpr int max_questions = 8;
constexpr std::chrono::seconds max_age{10};
constexpr json::Limits limits{.max_bytes = 1024, .max_depth = 4, .max_values = 16};

class Probe final : public net::ssh::LineChannel::Handler, public std::enable_shared_from_this<Probe> {
 public:
  Probe(std::shared_ptr<net::ssh::LineChannel> channel, const Fleet& fleet, const Clock& clock)
      : channel_(std::move(channel)), fleet_(fleet), clock_(clock) {}

  void start() {
    timer_ = channel_->worker().schedule(max_age, [self = weak_from_this()] {
      if (const auto probe = self.lock()) probe->channel_->close("a probe has no more time");
    });
  }

  void on_line(std::string_view line) override {
    const auto request = protocol::parse_agent_request(line, limits);
    if (!request || request->method != "probe" || ++questions_ > max_questions) {
      return channel_->close("a probe asks nothing else");
    }
    if (auto sent = channel_->send(protocol::encode_result(request->id, answer())); !sent) {
      channel_->close("a probe does not read");
    }
  }

  // The channel lets go of this handler now, and with it goes the channel.
  void on_closed(const Error& /*reason*/) override { timer_ = net::Timer(); }

 private:
  [[nodiscard]] std::string answer() const {
    const std::string& id = channel_->peer().user;
    const AgentPointer status = fleet_.find(id);
    const auto now = std::chrono::duration_cast<std::chrono::milliseconds>(clock_.wall_now().time_since_epoch());
    std::string text = fmt::format("{{\"unix_ms\":{},\"version\":\"{}\",\"agent_id\":{},\"online\":{}", now.count(),
                                   HIVE_VERSION, json::encode_string(id), status != nullptr && status->online);
    if (status && status->online) {
      text += fmt::format(",\"address\":{},\"connected_at\":\"{}\"", json::encode_string(status->address),
                          format_rfc3339(status->connected_at));
    }
    return text + "}";
  }

  std::shared_ptr<net::ssh::LineChannel> channel_;
  const Fleet& fleet_;
  const Clock& clock_;
  net::Timer timer_;
  int questions_ = 0;
};

}  // namespace

void answer_probe(std::shared_ptr<net::ssh::LineChannel> channel, const Fleet& fleet, const Clock& clock) {
  log::info("an agent asks how it can reach us",
            {{"agent", channel->peer().user}, {"address", channel->peer().address}});
  auto probe = std::make_shared<Probe>(channel, fleet, clock);
  probe->start();
  channel->set_handler(probe);
}

}  // namespace hive::fleet
