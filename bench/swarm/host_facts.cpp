#include "swarm/host_facts.h"

#include <string_view>
#include <utility>

#include "protocol/agent_protocol.h"

namespace hive::swarm {

namespace {

using net::ssh::LineChannel;

constexpr std::string_view tool = "get_system_info";
constexpr std::string_view facts =
    R"({"content":[{"type":"text","text":"{}"}],"structuredContent":{"os_version":"Debian GNU/Linux 12",)"
    R"("running_services":["cron","dbus","nginx","ssh","systemd-journald","systemd-logind","systemd-udevd"],)"
    R"("open_ports":["22","80","443"],"agent_version":"swarm"},"_meta":{"myrmex-hive/outcome":"success"}})";

class FactsHandler final : public LineChannel::Handler {
 public:
  FactsHandler(std::shared_ptr<LineChannel> channel, std::shared_ptr<LineChannel::Handler> next)
      : channel_(std::move(channel)), next_(std::move(next)) {}

  void on_line(std::string_view line) override {
    if (line.find(tool) == std::string_view::npos) return next_->on_line(line);
    const auto request = protocol::parse_agent_request(line, {});
    if (!request || request->method != "tools/call") return next_->on_line(line);
    const auto params = protocol::parse_tool_call_params(request->params);
    if (!params || params->name != tool) return next_->on_line(line);
    if (const auto sent = channel_->send(protocol::encode_result(request->id, facts)); !sent) {
      channel_->close("cannot answer");
    }
  }
  void on_writable() override { next_->on_writable(); }
  void on_closed(const Error& reason) override { next_->on_closed(reason); }

 private:
  std::shared_ptr<LineChannel> channel_;
  std::shared_ptr<LineChannel::Handler> next_;
};

class FactsChannel final : public LineChannel {
 public:
  explicit FactsChannel(std::shared_ptr<LineChannel> channel) : channel_(std::move(channel)) {}

  net::Worker& worker() override { return channel_->worker(); }
  const net::ssh::Peer& peer() const override { return channel_->peer(); }
  void set_handler(std::shared_ptr<Handler> handler) override {
    channel_->set_handler(std::make_shared<FactsHandler>(channel_, std::move(handler)));
  }
  Result<void> send(std::string_view line) override { return channel_->send(line); }
  size_t queued_bytes() const override { return channel_->queued_bytes(); }
  net::ssh::Traffic traffic() const override { return channel_->traffic(); }
  void probe() override { channel_->probe(); }
  void set_reading(bool enabled) override { channel_->set_reading(enabled); }
  void close(std::string_view reason) override { channel_->close(reason); }
  bool is_open() const override { return channel_->is_open(); }

 private:
  std::shared_ptr<LineChannel> channel_;
};

}  // namespace

std::shared_ptr<LineChannel> answer_host_facts(std::shared_ptr<LineChannel> channel) {
  return std::make_shared<FactsChannel>(std::move(channel));
}

}  // namespace hive::swarm
