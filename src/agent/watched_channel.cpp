#include "agent/watched_channel.h"

#include <optional>
#include <string>
#include <utility>

namespace hive::agent {

namespace {

class WatchedChannel final : public net::ssh::LineChannel, public net::ssh::LineChannel::Handler {
 public:
  using Handler = net::ssh::LineChannel::Handler;

  WatchedChannel(std::shared_ptr<net::ssh::LineChannel> channel, std::function<void(std::string_view)> line_seen,
                 std::function<void(const Error&)> closed_seen)
      : channel_(std::move(channel)), line_seen_(std::move(line_seen)), closed_seen_(std::move(closed_seen)) {}

  void start() {
    // The end must be noticed also before somebody handles lines; lines wait for their handler.
    channel_->set_reading(false);
    channel_->set_handler(std::static_pointer_cast<WatchedChannel>(shared_from_this()));
  }

  net::Worker& worker() override { return channel_->worker(); }
  const net::ssh::Peer& peer() const override { return channel_->peer(); }

  void set_handler(std::shared_ptr<Handler> handler) override {
    handler_ = std::move(handler);
    if (closed_ && handler_) {
      worker().post([self = std::static_pointer_cast<WatchedChannel>(shared_from_this())] { self->tell_closed(); });
    }
    channel_->set_reading(reading_);
  }

  Result<void> send(std::string_view line) override { return channel_->send(line); }
  size_t queued_bytes() const override { return channel_->queued_bytes(); }
  net::ssh::Traffic traffic() const override { return channel_->traffic(); }
  void probe() override { channel_->probe(); }

  void set_reading(bool enabled) override {
    reading_ = enabled;
    if (handler_) channel_->set_reading(enabled);
  }

  void close(std::string_view reason) override { channel_->close(reason); }
  bool is_open() const override { return channel_->is_open(); }

 private:
  void on_line(std::string_view line) override {
    line_seen_(line);
    const std::shared_ptr<Handler> handler = handler_;
    if (handler) handler->on_line(line);
  }

  void on_writable() override {
    const std::shared_ptr<Handler> handler = handler_;
    if (handler) handler->on_writable();
  }

  void on_closed(const Error& reason) override {
    closed_ = reason;
    closed_seen_(reason);
    tell_closed();
  }

  void tell_closed() {
    if (const std::shared_ptr<Handler> handler = std::exchange(handler_, nullptr)) handler->on_closed(*closed_);
  }

  std::shared_ptr<net::ssh::LineChannel> channel_;
  std::function<void(std::string_view)> line_seen_;
  std::function<void(const Error&)> closed_seen_;
  std::shared_ptr<Handler> handler_;
  bool reading_ = true;
  std::optional<Error> closed_;
};

}  // namespace

std::shared_ptr<net::ssh::LineChannel> watch_channel(std::shared_ptr<net::ssh::LineChannel> channel,
                                                     std::function<void(std::string_view)> on_line,
                                                     std::function<void(const Error&)> on_closed) {
  auto watched = std::make_shared<WatchedChannel>(std::move(channel), std::move(on_line), std::move(on_closed));
  watched->start();
  return watched;
}

}  // namespace hive::agent
