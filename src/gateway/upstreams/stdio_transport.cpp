#include <algorithm>

#include "gateway/upstreams/child.h"
#include "gateway/upstreams/transport.h"

namespace hive::upstreams {

namespace {

/// A message as one line. In JSON a line break can only stand between values, where a space means the same.
std::string one_line(std::string_view text) {
  std::string line(text);
  std::ranges::replace_if(line, [](char c) { return c == '\n' || c == '\r'; }, ' ');
  return line;
}

class StdioTransport final : public Transport, public std::enable_shared_from_this<StdioTransport> {
 public:
  StdioTransport(net::Worker& worker, net::Runtime& runtime, const ConnectionOptions& options, TransportEvents events)
      : worker_(worker), runtime_(runtime), options_(options), events_(std::move(events)) {}
  ~StdioTransport() override {
    if (child_ != nullptr) child_->stop();
  }

  void start() override {
    ChildEvents events;
    auto forward = [weak = weak_from_this()](auto action) {
      auto self = weak.lock();
      if (self != nullptr && !self->is_closed_) action(*self);
    };
    events.on_started = [forward] { forward([](StdioTransport& self) { self.events_.on_open(); }); };
    events.on_line = [forward](std::string_view line) {
      forward([line](StdioTransport& self) { self.events_.on_message(line, 0); });
    };
    events.on_ended = [forward](const Error& error) {
      forward([&error](StdioTransport& self) {
        self.is_closed_ = true;
        self.events_.on_closed(error);
      });
    };
    child_ = std::make_shared<Child>(worker_, runtime_,
                                     ChildSpec{.name = options_.name,
                                               .command = options_.command,
                                               .arguments = options_.arguments,
                                               .environment = options_.environment},
                                     std::move(events));
    child_->start();
  }

  void send_request(Outgoing request) override {
    if (child_->write(one_line(request.text))) return;
    worker_.post([self = shared_from_this(), ticket = request.ticket] {
      if (self->is_closed_) return;
      self->events_.on_failed(ticket, {.kind = ReplyKind::not_sent,
                                       .reason = "upstream_busy",
                                       .detail = "the server does not read what is sent to it",
                                       .body = {},
                                       .code = ErrorCode::unavailable});
    });
  }

  void send(std::string text, std::function<void()> sent) override {
    // A server that does not read its input will not miss a notification; requests to it fail loudly.
    static_cast<void>(child_->write(one_line(text)));
    if (sent) worker_.post(std::move(sent));
  }

  void finish(std::uint64_t) override {}
  void abandon(std::uint64_t) override {}
  void set_revision(mcp::Revision) override {}
  void listen() override {}
  void close() override {
    is_closed_ = true;
    if (child_ != nullptr) child_->stop();
  }
  [[nodiscard]] bool has_request_streams() const override { return false; }
  [[nodiscard]] std::optional<int> process_id() const override {
    if (child_ == nullptr || child_->pid() < 0) return std::nullopt;
    return child_->pid();
  }

 private:
  net::Worker& worker_;
  net::Runtime& runtime_;
  ConnectionOptions options_;
  const TransportEvents events_;  // never emptied, because one of them may be running
  bool is_closed_ = false;
  std::shared_ptr<Child> child_;
};

}  // namespace

std::shared_ptr<Transport> make_stdio_transport(net::Worker& worker, net::Runtime& runtime,
                                                const ConnectionOptions& options, TransportEvents events) {
  return std::make_shared<StdioTransport>(worker, runtime, options, std::move(events));
}

}  // namespace hive::upstreams
