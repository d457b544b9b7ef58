#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "net/ssh/line_channel.h"

namespace hive::net::ssh {

/// A channel whose other end is the test: it sees what is sent and says what arrives. Belongs to one worker.
class FakeLineChannel final : public LineChannel {
 public:
  FakeLineChannel(Worker& worker, std::string user) : worker_(worker) {
    peer_.user = std::move(user);
    peer_.address = "192.0.2.1";
    peer_.key_fingerprint = "SHA256:test";
  }

  [[nodiscard]] Worker& worker() override { return worker_; }
  [[nodiscard]] const Peer& peer() const override { return peer_; }
  void set_handler(std::shared_ptr<Handler> handler) override { handler_ = std::move(handler); }
  Result<void> send(std::string_view line) override {
    if (!open_) return fail(ErrorCode::unavailable, "the channel is closed");
    if (full_) return fail(ErrorCode::resource_exhausted, "the queue is full");
    sent_.emplace_back(line);
    if (on_send) on_send(sent_.back());
    return {};
  }
  [[nodiscard]] std::size_t queued_bytes() const override { return traffic_.queued; }
  [[nodiscard]] Traffic traffic() const override { return traffic_; }
  void probe() override { ++probes_; }
  void set_reading(bool enabled) override { reading_ = enabled; }
  void close(std::string_view reason) override {
    if (!open_) return;
    open_ = false;
    close_reason_ = reason;
    auto self = shared_from_this();
    worker_.post([this, self, reason = std::string(reason)] { tell_closed(Error{ErrorCode::cancelled, reason}); });
  }
  [[nodiscard]] bool is_open() const override { return open_; }

  /// The other end says `line`.
  void arrive(std::string_view line) {
    if (handler_ != nullptr) handler_->on_line(line);
  }
  /// The connection breaks.
  void break_down() {
    if (!open_) return;
    open_ = false;
    tell_closed(Error{ErrorCode::unavailable, "connection reset"});
  }

  [[nodiscard]] const std::vector<std::string>& sent() const { return sent_; }
  /// Before anybody has asked for the peer.
  void set_address(std::string address) { peer_.address = std::move(address); }
  void set_key(std::string fingerprint) { peer_.key_fingerprint = std::move(fingerprint); }
  [[nodiscard]] const std::string& close_reason() const { return close_reason_; }
  void set_full(bool full) { full_ = full; }
  void set_traffic(const Traffic& traffic) { traffic_ = traffic; }
  [[nodiscard]] int probes() const { return probes_; }

  /// Called with every line that is sent, for tests that answer by themselves.
  std::function<void(const std::string& line)> on_send;

 private:
  // The handler holds the channel, so a channel that is closed must not hold it any more.
  void tell_closed(const Error& reason) {
    if (auto handler = std::exchange(handler_, nullptr)) handler->on_closed(reason);
  }

  Worker& worker_;
  Peer peer_;
  std::shared_ptr<Handler> handler_;
  std::vector<std::string> sent_;
  std::string close_reason_;
  Traffic traffic_;
  int probes_ = 0;
  bool open_ = true;
  bool full_ = false;
  bool reading_ = true;
};

}  // namespace hive::net::ssh
