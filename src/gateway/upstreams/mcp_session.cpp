#include "gateway/upstreams/mcp_session.h"

#include "base/log.h"
#include "base/strings.h"
#include "protocol/json.h"
#include "protocol/mcp/translation.h"

namespace hive::upstreams {

namespace {

std::string id_of(std::uint64_t ticket) {
  return fmt::format("\"h-{}\"", ticket);
}

RequestOutcome without_answer(ReplyKind kind, std::string reason, std::string detail,
                              ErrorCode code = ErrorCode::unavailable) {
  return {.reply = {.kind = kind, .body = {}, .reason = std::move(reason), .detail = std::move(detail)}, .code = code};
}

/// What Mcp-Name repeats (MCP 2026-07-28, Standard Request Headers).
std::string name_of(std::string_view method, std::string_view raw_params) {
  std::string_view key = method == "resources/read"                          ? "uri"
                         : method == "tools/call" || method == "prompts/get" ? "name"
                                                                             : "";
  if (key.empty()) return {};
  auto members = json::parse_object(raw_params, mcp::message_limits);
  if (!members) return {};
  auto value = json::find(*members, key);
  return value ? json::decode_string(*value).value_or("") : "";
}

// What is left of a whole number of seconds is a little less.
std::string shown(std::chrono::milliseconds time) {
  auto seconds = std::chrono::round<std::chrono::seconds>(time);
  return seconds.count() > 0 ? fmt::format("{} s", seconds.count()) : fmt::format("{} ms", time.count());
}

}  // namespace

McpSession::McpSession(net::Worker& worker, net::Runtime& runtime, net::http::AsyncClient* http,
                       ConnectionOptions options, ConnectionEvents events)
    : worker_(worker),
      runtime_(runtime),
      http_(http == nullptr ? std::nullopt : std::optional(http->reference())),
      options_(std::move(options)),
      events_(std::move(events)),
      notification_credit_(0),
      notification_time_(std::chrono::steady_clock::now()) {}

void McpSession::start() {
  if (stage_ != Stage::idle) return;
  stage_ = Stage::opening;
  start_deadline_ = worker_.schedule(options_.start_timeout, [weak = weak_from_this()] {
    auto self = weak.lock();
    if (self == nullptr || self->stage_ == Stage::ready || self->stage_ == Stage::closed) return;
    self->fail(
        {ErrorCode::timed_out, fmt::format("{} within {} ms",
                                           self->stage_ == Stage::opening ? "the server could not be reached"
                                           : self->has_initialized_       ? "the server did not answer initialize"
                                                                          : "the server did not answer server/discover",
                                           self->options_.start_timeout.count())});
  });
  open_transport();
}

void McpSession::open_transport() {
  stage_ = Stage::opening;
  std::uint64_t generation = ++transport_generation_;
  auto guarded = [weak = weak_from_this(), generation](auto action) {
    auto self = weak.lock();
    if (self == nullptr || self->transport_generation_ != generation || self->stage_ == Stage::closed) return;
    action(*self);
  };
  TransportEvents events{
      .on_open = [guarded] { guarded([](McpSession& self) { self.on_open(); }); },
      .on_message = [guarded](std::string_view text,
                              std::uint64_t stream) { guarded([&](McpSession& self) { self.on_text(text, stream); }); },
      .on_failed =
          [guarded](std::uint64_t ticket, const RequestFailure& failure) {
            guarded([&](McpSession& self) {
              self.finish(ticket, {.reply = {.kind = failure.kind,
                                             .body = failure.body,
                                             .reason = failure.reason,
                                             .detail = failure.detail},
                                   .http_status = failure.http_status,
                                   .code = failure.code});
              if (failure.http_status == 0 && failure.reason != "upstream_busy") self.ping_after_failure();
            });
          },
      .on_interrupted =
          [guarded](std::uint64_t ticket) {
            guarded([&](McpSession& self) {
              auto entry = self.in_flight_.find(ticket);
              if (entry == self.in_flight_.end() || entry->second.caller == nullptr) return;
              auto caller = entry->second.caller;
              caller->interrupted();
            });
          },
      .on_closed =
          [guarded](const Error& error) {
            guarded([&](McpSession& self) {
              if (!self.start_again_unprobed()) self.fail(error);
            });
          }};
  if (options_.transport == TransportKind::stdio) {
    transport_ = make_stdio_transport(worker_, runtime_, options_, std::move(events));
  } else if (!http_) {
    worker_.post([self = shared_from_this()] {
      self->fail({ErrorCode::internal, "there is no HTTP client for this connection"});
    });
    return;
  } else if (options_.transport == TransportKind::sse) {
    transport_ = make_sse_transport(worker_, *http_, options_, std::move(events));
  } else {
    transport_ = make_http_transport(worker_, *http_, options_, std::move(events));
  }
  transport_->start();
}

void McpSession::request(std::uint64_t ticket, ConnectionRequest request) {
  auto done = [wrapped = std::move(request.done)](RequestOutcome outcome) mutable {
    if (wrapped) wrapped(std::move(outcome.reply));
  };
  if (stage_ != Stage::ready) {
    return done(without_answer(ReplyKind::not_sent, "upstream_offline", "the server is not connected"));
  }
  if (in_flight_.size() >= options_.max_in_flight) {
    return done(without_answer(ReplyKind::not_sent, "upstream_busy",
                               fmt::format("{} requests to the server are under way already", in_flight_.size())));
  }
  if (request.params.empty()) request.params = "{}";
  if (!json::is_object(request.params)) {
    return done(without_answer(ReplyKind::not_sent, "invalid_params", "the parameters are no JSON object"));
  }
  InFlight& entry = in_flight_[ticket];
  entry.method = request.method;
  entry.caller = request.caller;
  entry.done = std::move(done);
  set_deadline(ticket, request.timeout);

  // A legacy session has one log level; it follows the client that asks now.
  std::optional<std::string> level = entry.caller == nullptr ? std::nullopt : entry.caller->log_level();
  if (!is_modern() && level && level != log_level_ && mcp::has_capability(info_.capabilities, "logging")) {
    log_level_ = level;
    auto held = std::make_shared<ConnectionRequest>(std::move(request));
    send_own("logging/setLevel", fmt::format("{{\"level\":{}}}", json::encode_string(*level)), options_.ping_timeout,
             info_.revision, [weak = weak_from_this(), ticket, held](const RequestOutcome&) {
               if (auto self = weak.lock()) self->send_request(ticket, *held);
             });
    return;
  }
  send_request(ticket, request);
}

void McpSession::send_request(std::uint64_t ticket, ConnectionRequest& request) {
  if (stage_ != Stage::ready || !in_flight_.contains(ticket)) return;  // cancelled while the level was being set
  transmit(ticket, request.params, info_.revision, std::move(request.headers));
}

std::uint64_t McpSession::send_own(std::string_view method, std::string_view raw_params,
                                   std::chrono::milliseconds timeout, std::optional<mcp::Revision> revision,
                                   Done done) {
  std::uint64_t ticket = next_ticket();
  InFlight& entry = in_flight_[ticket];
  entry.method = method;
  entry.done = std::move(done);
  if (timeout.count() > 0) set_deadline(ticket, timeout);
  transmit(ticket, raw_params, revision, {});
  return ticket;
}

std::string McpSession::with_meta(std::uint64_t ticket, const InFlight& entry, std::string_view raw_params,
                                  std::optional<mcp::Revision> revision) const {
  std::vector<mcp::MemberChange> changes;
  std::string token = id_of(ticket);
  std::string version;
  std::string level;
  bool wants_progress = entry.caller != nullptr && entry.caller->wants_progress();
  changes.push_back({"progressToken", wants_progress ? std::string_view(token) : std::string_view()});
  if (revision && mcp::is_modern(*revision)) {
    version = json::encode_string(mcp::to_string(*revision));
    changes.push_back({"io.modelcontextprotocol/protocolVersion", version});
    changes.push_back({"io.modelcontextprotocol/clientCapabilities",
                       entry.caller == nullptr ? std::string_view(options_.capabilities)
                                               : std::string_view(entry.caller->capabilities())});
    changes.push_back({"io.modelcontextprotocol/clientInfo", options_.client_info});
    auto wanted = entry.caller == nullptr ? options_.log_level : entry.caller->log_level();
    if (wanted) level = json::encode_string(*wanted);
    changes.push_back({"io.modelcontextprotocol/logLevel", level});
  }
  std::string_view old_meta = "{}";
  auto members = json::parse_object(raw_params, mcp::message_limits);
  if (members) {
    if (auto found = json::find(*members, "_meta"); found && json::is_object(*found)) old_meta = *found;
  }
  std::string meta = mcp::with_members(old_meta, changes);
  if (meta == "{}") return std::string(raw_params);
  return mcp::with_members(raw_params, std::vector<mcp::MemberChange>{{"_meta", meta}});
}

void McpSession::transmit(std::uint64_t ticket, std::string_view raw_params, std::optional<mcp::Revision> revision,
                          std::vector<std::pair<std::string, std::string>> headers) {
  InFlight& entry = in_flight_.at(ticket);
  entry.is_sent = true;
  std::string params = with_meta(ticket, entry, raw_params, revision);
  std::string text = mcp::encode_request(id_of(ticket), entry.method, params);
  std::string name = name_of(entry.method, raw_params);
  std::string method = entry.method;
  transport_->send_request({.ticket = ticket,
                            .method = method,
                            .text = text,
                            .revision = revision,
                            .name = name,
                            .headers = std::move(headers)});
}

void McpSession::set_deadline(std::uint64_t ticket, std::chrono::milliseconds timeout) {
  in_flight_.at(ticket).deadline = worker_.schedule(timeout, [weak = weak_from_this(), ticket, timeout] {
    auto self = weak.lock();
    if (self == nullptr) return;
    self->withdraw(
        ticket, "timed out",
        without_answer(ReplyKind::timed_out, "timed_out",
                       fmt::format("the server did not answer within {}", shown(timeout)), ErrorCode::timed_out));
  });
}

void McpSession::cancel(std::uint64_t ticket, const std::string& reason) {
  withdraw(ticket, reason,
           without_answer(ReplyKind::unconfirmed, "cancelled", "cancelled after it was sent", ErrorCode::cancelled));
}

void McpSession::withdraw(std::uint64_t ticket, const std::string& reason, RequestOutcome outcome) {
  auto entry = in_flight_.find(ticket);
  if (entry == in_flight_.end()) return;
  if (!entry->second.is_sent) {
    outcome.reply = {
        .kind = ReplyKind::not_sent, .body = {}, .reason = "cancelled", .detail = "cancelled before it was sent"};
    return finish(ticket, std::move(outcome));
  }
  // Modern HTTP cancels by closing the stream alone; initialize and its modern counterpart may not be cancelled.
  bool needs_message = !(is_modern() && transport_->has_request_streams()) && entry->second.method != "initialize" &&
                       entry->second.method != "server/discover";
  if (needs_message && stage_ != Stage::closed) {
    std::string params = fmt::format("{{\"requestId\":{}", id_of(ticket));
    if (!reason.empty()) params += fmt::format(",\"reason\":{}", json::encode_string(reason));
    transport_->send(mcp::encode_notification("notifications/cancelled", params + "}"));
  }
  transport_->abandon(ticket);
  finish(ticket, std::move(outcome));
}

void McpSession::finish(std::uint64_t ticket, RequestOutcome outcome) {
  auto entry = in_flight_.find(ticket);
  if (entry == in_flight_.end()) return;
  Done done = std::move(entry->second.done);
  in_flight_.erase(entry);
  if (transport_ != nullptr) transport_->finish(ticket);
  drop_asks_of(ticket);
  if (done) done(std::move(outcome));
}

void McpSession::notify(const std::string& method, const std::string& raw_params) {
  if (stage_ == Stage::ready) transport_->send(mcp::encode_notification(method, raw_params));
}

void McpSession::fail_all(const Error& error) {
  asks_.clear();
  auto in_flight = std::exchange(in_flight_, {});
  for (auto& [ticket, entry] : in_flight) {
    if (entry.done == nullptr) continue;
    entry.done(without_answer(entry.is_sent ? ReplyKind::lost : ReplyKind::not_sent,
                              entry.is_sent ? "lost" : "upstream_offline", error.message, error.code));
  }
}

void McpSession::shut_down() {
  stage_ = Stage::closed;
  process_id_ = -1;
  start_deadline_.cancel();
  probe_deadline_.cancel();
  ping_timer_.cancel();
  listening_timer_.cancel();
  if (transport_ != nullptr) transport_->close();
}

void McpSession::close() {
  if (stage_ == Stage::closed) return;
  shut_down();
  // Later, because the owner may be in the middle of something.
  worker_.post([self = shared_from_this()] {
    self->fail_all({ErrorCode::cancelled, "the connection to the server was closed"});
  });
}

void McpSession::fail(Error error) {
  if (stage_ == Stage::closed) return;
  shut_down();
  fail_all(error);
  if (events_.on_closed) events_.on_closed(error);
}

namespace {

/// What the owner holds: hands everything to the session on its worker.
class Handle final : public Connection {
 public:
  Handle(net::Worker& worker, std::shared_ptr<McpSession> session) : worker_(worker), session_(std::move(session)) {}
  ~Handle() override {
    worker_.dispatch([session = std::move(session_)] { session->close(); });
  }

  void start() override {
    worker_.post([session = session_] { session->start(); });
  }
  std::uint64_t request(ConnectionRequest request) override {
    std::uint64_t ticket = session_->next_ticket();
    worker_.post([session = session_, ticket, moved = std::move(request)]() mutable {
      session->request(ticket, std::move(moved));
    });
    return ticket;
  }
  void cancel(std::uint64_t ticket, std::string reason) override {
    worker_.post([session = session_, ticket, moved = std::move(reason)] { session->cancel(ticket, moved); });
  }
  void notify(std::string method, std::string raw_params) override {
    worker_.post([session = session_, what = std::move(method), params = std::move(raw_params)] {
      session->notify(what, params);
    });
  }
  void watch_resources(std::vector<std::string> uris) override {
    worker_.post(
        [session = session_, moved = std::move(uris)]() mutable { session->watch_resources(std::move(moved)); });
  }
  void close() override {
    worker_.dispatch([session = session_] { session->close(); });
  }
  [[nodiscard]] std::optional<int> process_id() const override {
    int pid = session_->process_id();
    return pid < 0 ? std::nullopt : std::optional(pid);
  }

 private:
  net::Worker& worker_;
  std::shared_ptr<McpSession> session_;
};

}  // namespace

std::unique_ptr<Connection> Connection::create(net::Worker& worker, net::Runtime& runtime, net::http::AsyncClient* http,
                                               ConnectionOptions options, ConnectionEvents events) {
  return std::make_unique<Handle>(
      worker, std::make_shared<McpSession>(worker, runtime, http, std::move(options), std::move(events)));
}

}  // namespace hive::upstreams
